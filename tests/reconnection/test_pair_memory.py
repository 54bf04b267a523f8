"""Pairs that are remembered are those that would be found."""

import pytest
import torch
from reconnection_cases import assert_close, make_case

from gcnsl.reconnection import PairMemory, reconnect

numba_backend = pytest.importorskip("gcnsl.reconnection.numba_backend", reason="numba is not installed")

CASE = make_case(300, None, 8, 5, "few", seed=2)


@pytest.fixture
def searches(monkeypatch):
    """Count the searches."""
    seen = []
    original = numba_backend.Searched.of

    def counted(*arguments):
        seen.append(arguments)
        return original(*arguments)

    monkeypatch.setattr(numba_backend.Searched, "of", counted)
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


def test_another_z_or_threshold_is_searched_anew(searches) -> None:
    memory = PairMemory()
    z, h = (leaf.detach() for leaf in CASE.leaves())
    turned = torch.nn.functional.normalize(z + 0.01)
    for rows, epsilon in ((z, 0.9), (turned, 0.9), (turned, 0.8), (z, 0.8)):
        remembered = reconnect(rows, h, epsilon, backend="numba", memory=memory)
        assert remembered.equal(reconnect(rows, h, epsilon, backend="numba"))
    assert len(searches) == 8


def test_z_may_change_in_place() -> None:
    memory = PairMemory()
    z, h = (leaf.detach() for leaf in CASE.leaves())
    reconnect(z, h, 0.9, backend="numba", memory=memory)
    z.copy_(z.roll(1, dims=0))
    remembered = reconnect(z, h, 0.9, backend="numba", memory=memory)
    assert remembered.equal(reconnect(z, h, 0.9, backend="numba"))


def test_values_are_still_looked_at() -> None:
    memory = PairMemory()
    z, h = (leaf.detach() for leaf in CASE.leaves())
    reconnect(z, h, 0.9, backend="numba", memory=memory)
    h[3, 2] = torch.nan
    with pytest.raises(ValueError, match=r"h\[3, 2\] is nan"):
        reconnect(z, h, 0.9, backend="numba", memory=memory)
