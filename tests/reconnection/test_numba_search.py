import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import normalize

from gcnsl.reconnection import numba_search
from gcnsl.reconnection.numba_pairs import Searched
from gcnsl.reconnection.numba_search import UNLIMITED, WIDTH, find_rows, mirrored

from .cases import make_case


@given(st.integers(0, 70), st.integers(0, 2**31), st.floats(0, 1))
def test_mirrored_pairs_are_the_symmetric_matrix(n: int, seed: int, density: float) -> None:
    upper = np.triu(np.random.default_rng(seed).random((n, n)) < density)
    rows, columns = upper.nonzero()
    start, both = mirrored(np.searchsorted(rows, np.arange(n + 1)).astype(np.int64), columns.astype(np.int32))
    rows, columns = (upper | upper.T).nonzero()
    assert np.array_equal(both, columns)
    assert np.array_equal(start, np.searchsorted(rows, np.arange(n + 1)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("m", [1, WIDTH - 1, WIDTH, WIDTH + 1])
@pytest.mark.parametrize("q", [1, 15, 16, 17, 40])
def test_keys_and_entries_beside_a_full_tile(m: int, q: int, dtype: torch.dtype) -> None:
    case = make_case(n=40, m=m, q=q, p=1, kind="some", seed=3, zero_rows=1)
    z, keys, _, threshold, *_ = case.problem(dtype)
    searched = Searched.of(z, keys, threshold)
    found = np.zeros(1, np.int64)
    search = searched.rows, searched.tiles, threshold, 5, 33, False, UNLIMITED, UNLIMITED, True
    counts, columns = find_rows(*search, found, 0, UNLIMITED)
    rows, expected = (z[5:33].double() @ keys.double().T >= threshold).nonzero().T
    assert torch.equal(torch.from_numpy(columns).long(), expected)
    assert torch.equal(torch.from_numpy(counts), torch.bincount(rows, minlength=28))
    assert found[0] == len(expected)
    assert numba_search.count_rows(searched.rows, searched.tiles, threshold, 5, 33) == len(expected)


def test_the_search_stops_at_its_limit() -> None:
    z = normalize(torch.ones(1000, 4), dim=1)
    searched = Searched.of(z, z, 0.5)
    found = np.zeros(1, np.int64)
    search = searched.rows, searched.tiles, searched.threshold, 0, 1000, False, UNLIMITED, 0, True
    counts, _ = find_rows(*search, found, 0, 5000)
    assert 5000 < found[0] < 100_000
    assert counts[-1] == 0
