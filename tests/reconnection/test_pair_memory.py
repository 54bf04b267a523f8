import copy
import pickle

import pytest
import torch

from gcnsl.reconnection import PairMemory, numba_backend, reconnect
from gcnsl.reconnection.problem import Problem

from .cases import assert_close, make_case

CASE = make_case(300, None, 8, 5, "few", seed=2)


@pytest.fixture
def searches(monkeypatch):
    """Count the searches."""
    seen = []
    original = numba_backend._listed_if_few

    def counted(problem):
        seen.append(problem)
        return original(problem)

    monkeypatch.setattr(numba_backend, "_listed_if_few", counted)
    return seen


def test_the_same_z_is_searched_once_and_gives_the_same(searches) -> None:
    memory = PairMemory()
    results = []
    for _ in range(3):
        z, h = CASE.leaves()
        out = reconnect(z, h, CASE.epsilon, backend="numba", memory=memory)
        results.append([out.detach(), *torch.autograd.grad((out * CASE.upstream()).sum(), (z, h))])
    assert len(searches) == 1
    for result in results:
        assert_close(result, CASE.expected())
        for value, first in zip(result, results[0], strict=True):
            assert value.equal(first)


def test_another_z_or_threshold_is_searched_anew_and_pairs_without_loops_are_others(searches) -> None:
    memory = PairMemory()
    z, h = (leaf.detach() for leaf in CASE.leaves())
    turned = torch.nn.functional.normalize(z + 0.01)
    for rows, epsilon, loops in ((z, 0.9, True), (turned, 0.9, True), (turned, 0.8, True), (turned, 0.8, False)):
        remembered = reconnect(rows, h, epsilon, loops=loops, backend="numba", memory=memory)
        assert remembered.equal(reconnect(rows, h, epsilon, loops=loops, backend="numba"))
    assert len(searches) == 8


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda memory: pickle.loads(pickle.dumps(memory))])
def test_a_copy_does_not_carry_the_pairs(copied) -> None:
    memory = PairMemory()
    reconnect(CASE.z, CASE.h, 0.9, backend="numba", memory=memory)
    problem = Problem.of(CASE.z, None, CASE.h, 0.9)
    assert memory.recall(problem) is not None
    assert copied(memory).recall(problem) is None
    assert len(pickle.dumps(memory)) < 200


def test_values_are_still_checked() -> None:
    memory = PairMemory()
    z, h = (leaf.detach() for leaf in CASE.leaves())
    reconnect(z, h, 0.9, backend="numba", memory=memory)
    h[3, 2] = torch.nan
    with pytest.raises(ValueError, match=r"h\[3, 2\] is nan"):
        reconnect(z, h, 0.9, backend="numba", memory=memory)
