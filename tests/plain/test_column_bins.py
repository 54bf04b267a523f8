import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from gcnsl.plain.column_bins import BINS, column_bins, column_edges

TABLES = arrays(np.float64, array_shapes(min_dims=2, max_dims=2, max_side=90), elements=st.integers(-40, 40))


@given(TABLES)
def test_edges_lie_between_values_and_bins_follow_the_order(columns) -> None:
    edges = column_edges(columns)
    bins = column_bins(columns, edges)
    assert edges.shape == (columns.shape[1], BINS - 1)
    assert bins.max(initial=0) < BINS
    for column, own, numbers in zip(columns.T, edges, bins.T, strict=True):
        assert not np.isin(own, column).any()
        assert numbers.tolist() == [int((own < value).sum()) for value in column]
        if len(np.unique(column)) <= BINS:
            assert len(np.unique(numbers)) == len(np.unique(column)), "few values have a bin each"


def test_bins_of_many_values_are_about_equally_full() -> None:
    column = np.random.default_rng(0).lognormal(size=(3200, 1))
    counts = np.bincount(column_bins(column, column_edges(column))[:, 0])
    assert len(counts) == BINS
    assert 90 <= counts.min() <= counts.max() <= 110
