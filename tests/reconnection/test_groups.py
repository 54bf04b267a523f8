import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from gcnsl.reconnection import groups, numba_search
from gcnsl.reconnection.groups import GroupSize, draw_groups, split_groups


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


def test_a_split_is_at_a_median_of_the_direction_between_two_rows() -> None:
    z = torch.eye(4).repeat_interleave(256, dim=0)
    drawn = split_groups(z, 256, 2, seeded(0))
    together = [len(set((group // 256).tolist())) for group in drawn]
    assert sum(together) < 3 * len(drawn), "random groups would have rows of all four directions"


def test_groups_without_splits_are_random() -> None:
    z = torch.eye(4).repeat_interleave(256, dim=0)
    for group in split_groups(z, 256, 0, seeded(0)):
        assert (torch.bincount(group // 256, minlength=4) > 40).all()


def test_splits_keep_similar_rows_together() -> None:
    z = unit_rows(8192)
    found = [kept_per_row(z, split_groups(z, 256, splits, seeded(1)), 0.95) for splits in (0, 2, 5)]
    assert found[1] - 1 > 2 * (found[0] - 1)
    assert found[2] - 1 > 2 * (found[1] - 1)


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


def test_groups_are_made_of_whole_tiles_of_the_search() -> None:
    assert groups.WIDTH == numba_search.WIDTH


def test_the_seed_decides() -> None:
    z = unit_rows(3000)
    one, again, other = (draw_groups(z, 0.9, GroupSize(512, 8), seed=seed) for seed in (1, 1, 2))
    assert torch.equal(one, again)
    assert not torch.equal(one, other)


@pytest.mark.parametrize("most", [1024, 4096])
def test_groups_within_clusters_are_divided(most) -> None:
    """All rows of a cluster are similar, so that a group by direction would hold as many similar rows as it has."""
    z = torch.eye(64).repeat_interleave(512, dim=0)
    drawn = draw_groups(z, 0.9, GroupSize(most, 32), seed=0)
    assert torch.equal(drawn.flatten().sort().values, torch.arange(drawn.numel()))
    assert 16 <= kept_per_row(z, drawn, 0.9) <= 128
