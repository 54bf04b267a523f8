"""Groups of similar rows, and averages over the pairs in one group."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from gcnsl.reconnection import PairMemory, in_groups, reconnect
from gcnsl.reconnection.in_groups import (
    GroupSize,
    draw_groups,
    reconnect_at_any_size,
    reconnect_in_groups,
    split_groups,
)

from .cases import Case, assert_close, make_case

SMALL = GroupSize(most=128, enough=4)


def in_one_group(case: Case, seed: int, size: GroupSize = SMALL) -> torch.Tensor:
    """Which pairs of rows are compared (n × n)."""
    groups = draw_groups(case.z.double(), case.epsilon, size, seed=seed)
    number = torch.empty(groups.numel(), dtype=torch.int64)
    number[groups] = torch.arange(len(groups))[:, None]
    number = number[: len(case.z)]
    return number[:, None] == number


def expected(case: Case, compared: torch.Tensor, *, loops: bool) -> list[torch.Tensor]:
    """The definition, with matrices of all pairs, in float64: the averages, and the gradients of z and h."""
    z, h = case.leaves(torch.float64)
    similarity = z @ z.T
    kept = compared & (similarity >= case.epsilon) & (loops | ~torch.eye(len(z), dtype=torch.bool))
    graph = torch.where(kept, similarity, 0.0)
    degree = graph.sum(dim=1, keepdim=True)
    out = graph @ h / torch.where(degree > 0, degree, 1.0)
    out.backward(case.upstream().double())
    return [out.detach(), z.grad, h.grad]


def found(case: Case, *, loops: bool, seed: int, size: GroupSize = SMALL) -> list[torch.Tensor]:
    z, h = case.leaves(torch.float64)
    out = reconnect_in_groups(z, h, case.epsilon, loops=loops, size=size, seed=seed)
    out.backward(case.upstream().double())
    return [out.detach(), z.grad, h.grad]


@given(st.integers(1, 900), st.sampled_from(["few", "some"]), st.booleans(), st.integers(0, 2**31))
@settings(max_examples=15, deadline=None)
def test_values_and_gradients_are_those_of_the_pairs_in_one_group(n: int, kind: str, loops: bool, seed: int) -> None:
    case = make_case(n, m=None, q=5, p=3, kind=kind, seed=seed % 1000, zero_rows=n // 50)
    assert_close(found(case, loops=loops, seed=seed), expected(case, in_one_group(case, seed), loops=loops), 1e-9)


@pytest.mark.parametrize("loops", [True, False])
@pytest.mark.parametrize("n", [1, 500, 1100])
def test_so_they_are_as_a_gpu_computes_them(monkeypatch, n, loops) -> None:
    monkeypatch.setattr(in_groups, "_average_groups", in_groups.average_dense_groups)
    monkeypatch.setattr(in_groups, "DENSE_ENTRIES", 2 * 128**2)
    case = make_case(n, m=None, q=5, p=3, kind="some", seed=n, zero_rows=n // 50)
    assert_close(found(case, loops=loops, seed=n), expected(case, in_one_group(case, n), loops=loops), 1e-9)


def test_averages_in_groups_are_near_those_over_all() -> None:
    case = make_case(4000, m=None, q=3, p=1, kind="few", seed=0)
    h = case.z[:, :1].contiguous()  # similar rows have similar values, as in a graph that is worth learning
    near = reconnect_in_groups(case.z, h, case.epsilon, loops=False, size=GroupSize(512, 32), seed=0)
    exact = reconnect(case.z, h, case.epsilon, loops=False)
    assert float((near - exact).square().mean()) < 0.02 * float(exact.var())


@pytest.fixture
def small_limit(monkeypatch):
    monkeypatch.setattr(in_groups, "EXACT_NODES", 500)
    monkeypatch.setattr(in_groups, "IN_TRAINING", SMALL)
    monkeypatch.setattr(in_groups, "IN_EVALUATION", GroupSize(256, 8))


def test_small_graphs_are_exact_to_the_bit_and_draw_nothing(small_limit) -> None:
    case = make_case(500, m=None, q=5, p=3, kind="few", seed=0)
    torch.manual_seed(0)
    before = torch.get_rng_state()
    for training in (True, False):
        out = reconnect_at_any_size(case.z, case.h, case.epsilon, training=training, memory=PairMemory())
        assert torch.equal(out, reconnect(case.z, case.h, case.epsilon))
    assert torch.equal(before, torch.get_rng_state())


def test_training_steps_differ_and_evaluation_repeats(small_limit) -> None:
    case = make_case(501, m=None, q=5, p=3, kind="few", seed=0)

    def averages(training: bool) -> torch.Tensor:
        return reconnect_at_any_size(case.z, case.h, case.epsilon, training=training)

    torch.manual_seed(0)
    steps = [averages(training=True) for _ in range(2)]
    torch.manual_seed(0)
    assert torch.equal(averages(training=True), steps[0])
    assert not torch.equal(*steps)
    state = torch.get_rng_state()
    assert torch.equal(averages(training=False), averages(training=False))
    assert torch.equal(state, torch.get_rng_state())


@pytest.mark.parametrize("average", [in_groups._average_groups, in_groups.average_dense_groups])
def test_half_precision(small_limit, monkeypatch, average) -> None:
    monkeypatch.setattr(in_groups, "_average_groups", average)
    case = make_case(501, m=None, q=5, p=3, kind="few", seed=0)
    z, h = case.leaves(torch.bfloat16)
    out = reconnect_at_any_size(z, h, 0.8, training=True)
    out.sum().backward()
    assert out.dtype == z.grad.dtype == h.grad.dtype == torch.bfloat16


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def unit_rows(n: int, q: int = 6, seed: int = 0) -> Tensor:
    return torch.nn.functional.normalize(torch.randn(n, q, generator=seeded(seed)), dim=1)


def kept_per_row(z: Tensor, drawn: Tensor, threshold: float) -> float:
    """The mean number of similar rows in a row's group, counted group by group."""
    members = [z[group[group < len(z)]] for group in drawn]
    return sum(int((own @ own.T >= threshold).sum()) for own in members) / len(z)


@given(st.integers(1, 3000), st.integers(128, 700), st.integers(0, 6), st.integers(0, 2**31))
@settings(max_examples=40, deadline=None)
def test_each_row_is_in_one_group(n: int, most: int, splits: int, seed: int) -> None:
    drawn = split_groups(unit_rows(n, q=3), most, splits, seeded(seed))
    assert torch.equal(drawn.flatten().sort().values, torch.arange(drawn.numel()))
    assert drawn.shape[1] % 128 == 0
    assert drawn.shape[1] < most + 128
    assert drawn.numel() - n < 128 * len(drawn)


@pytest.mark.parametrize("threshold", [0.1, 0.6, 0.9])
def test_a_group_holds_about_enough_similar_rows(threshold) -> None:
    z = unit_rows(20_000, q=3)
    found = kept_per_row(z, draw_groups(z, threshold, GroupSize(1024, 32), seed=0), threshold)
    assert 16 < found < 80, "it is 32 unless 128 rows, the least that a group has, hold more"


def test_rows_that_are_all_equal_or_zero() -> None:
    same = unit_rows(1).repeat(5000, 1)
    assert draw_groups(same, 0.9, GroupSize(1024, 32), seed=0).shape[1] <= 256
    nothing = torch.zeros_like(same)
    assert draw_groups(nothing, 0.9, GroupSize(1024, 32), seed=0).shape[1] > 512


@pytest.mark.parametrize("most", [1024, 4096])
def test_groups_within_clusters_are_divided(most) -> None:
    """All rows of a cluster are similar, so that a group by direction would hold as many similar rows as it has."""
    z = torch.eye(64).repeat_interleave(512, dim=0)
    drawn = draw_groups(z, 0.9, GroupSize(most, 32), seed=0)
    assert torch.equal(drawn.flatten().sort().values, torch.arange(drawn.numel()))
    assert 16 <= kept_per_row(z, drawn, 0.9) <= 128
