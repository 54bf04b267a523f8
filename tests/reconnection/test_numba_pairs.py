import numpy as np
import pytest
import torch
from hypothesis import given, settings

from gcnsl.reconnection import numba_pairs, threads
from gcnsl.reconnection.numba_pairs import Listed, Part, Searched
from gcnsl.reconnection.numba_search import UNLIMITED

from .cases import Case, cases, make_case


def kept_by(pairs: Listed | Searched, n: int, m: int) -> torch.Tensor:
    """The pairs as a matrix of ones (n × m), each row visited once and its columns ascending."""
    kept, visits = np.zeros((n, m), dtype=bool), np.zeros(n, dtype=int)

    def work(part: Part) -> None:
        begin, end, start, columns = part
        for i in range(begin, end):
            own = columns[start[i - begin] : start[i - begin + 1]]
            assert (np.diff(own) > 0).all()
            kept[i, own] = True
            visits[i] += 1

    pairs.apply(work)
    assert (visits == 1).all()
    return torch.from_numpy(kept)


@given(cases(largest=700))
@settings(max_examples=20, deadline=None)
def test_listed_and_searched_pairs_are_those_of_the_matrix(case: Case) -> None:
    z, keys, _, threshold, *_ = case.problem(torch.float64)
    n, m = len(z), len(keys)
    expected = z @ keys.T >= threshold
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(numba_pairs, "STREAMED_ROWS", 50)
        patch.setattr(threads, "WORK_PER_SHARE", 1 << 10)
        searched = Searched.of(z, keys, threshold)
        listed = searched.listed(UNLIMITED)
        assert listed is not None
        for pairs in (searched, listed):
            assert torch.equal(kept_by(pairs, n, m), expected)
            assert torch.equal(kept_by(pairs.transposed(), m, n), expected.T)


@pytest.mark.parametrize("m", [None, 400])
def test_no_list_is_longer_than_its_limit(m: int | None) -> None:
    z, keys, _, threshold, *_ = make_case(n=700, m=m, q=6, p=2, kind="few", seed=1, duplicates=3).problem()
    number = int((z @ keys.T >= threshold).sum())
    searched = Searched.of(z, keys, threshold)
    assert searched.listed(number - 1) is None
    listed = searched.listed(number)
    assert listed is not None
    assert listed.start[-1] == len(listed.columns) == number


def test_the_sampled_degree() -> None:
    z, keys, _, threshold, *_ = make_case(n=640, m=500, q=6, p=2, kind="some", seed=1).problem()
    degrees = (z @ keys.T >= threshold).sum(dim=1)
    assert Searched.of(z, keys, threshold).sampled_degree(64) == pytest.approx(float(degrees[::10].double().mean()))


@pytest.mark.parametrize("n", [100, 128, 700])
def test_pairs_in_groups(n: int) -> None:
    z, keys, _, threshold, *_ = make_case(n=n, m=None, q=6, p=2, kind="some", seed=1).problem(torch.float64)
    group = torch.arange(n) // 256
    expected = (z @ keys.T >= threshold) & (group[:, None] == group)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threads, "WORK_PER_SHARE", 1 << 10)
        listed = Searched.of(z, keys, threshold).listed(UNLIMITED, span=256)
    assert listed is not None
    assert torch.equal(kept_by(listed, n, n), expected)
