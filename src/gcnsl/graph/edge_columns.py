"""Columns of edges as columns of the nodes at their ends: counts, sums, means, maxima, shares, and the last date.

For a node i with the edges E_i and the values v_e of a column, missing ones left out:

- a number gives Σ v_e, the mean and the maximum over E_i; if some values are negative, the share above 0 as well;
- 0 and 1, and each of the most frequent levels of a category, give the share of the edges that have it;
- a date gives the mean and the latest one, in days.

In a directed graph, edges that leave a node and edges that enter it are kept apart. Means, maxima and shares of a node
without edges are missing; its sums and counts are 0. Nothing is learned here, so the columns of a grown graph are made
in the same way.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gcnsl.graph.columns import DECIMAL_COMMA, Columns

MOST_LEVELS = 20
"""Of more levels, the most frequent have a column each."""

Floats = NDArray[np.float64]


def edge_columns(columns: Columns, ends: NDArray[np.int32], num_nodes: int, *, directed: bool) -> pa.Table:
    """The columns of the nodes (n rows) that the columns of the edges and the ends of the edges (2 × E) make.

    A repeated edge counts as often as it is listed.
    """
    table = {
        f"{view}: {name}": values
        for view, nodes, edges in _views(ends, directed=directed)
        for name, values in _of_view(columns, nodes, edges, num_nodes)
    }
    return pa.table({name: pa.array(values, from_pandas=True) for name, values in table.items()})


def _views(ends: NDArray[np.int32], *, directed: bool) -> Iterator[tuple[str, NDArray[np.int32], NDArray[np.int64]]]:
    """Each kind of edges of a node: its name, and pairs of a node and the row of an edge."""
    rows = np.arange(ends.shape[1])
    if directed:
        yield "out-edges", ends[0], rows
        yield "in-edges", ends[1], rows
    else:
        other = ends[0] != ends[1]  # a loop is one edge of its node
        yield "edges", np.concatenate([ends[0], ends[1, other]]), np.concatenate([rows, rows[other]])


def _of_view(
    columns: Columns, nodes: NDArray[np.int32], edges: NDArray[np.int64], num_nodes: int
) -> Iterator[tuple[str, Floats]]:
    """The columns that pairs of a node and an edge make, by name."""
    yield "count", np.bincount(nodes, minlength=num_nodes).astype(np.float64)
    for column, kind in columns.used.items():
        if kind == "category":
            yield from _shares(column, columns, nodes, edges, num_nodes)
            continue
        values = columns.numbers(column, kind)[edges]
        known = ~np.isnan(values)
        some, values = nodes[known], values[known]
        count = np.bincount(some, minlength=num_nodes)
        total = np.bincount(some, values, num_nodes)
        if kind == "binary":
            yield f"share {column}", _ratio(total, count)
            continue
        yield f"mean {column}", _ratio(total, count)
        latest = np.full(num_nodes, -np.inf)
        np.maximum.at(latest, some, values)
        latest[count == 0] = np.nan
        yield f"{'last' if kind == 'date' else 'max'} {column}", latest
        if kind in ("number", DECIMAL_COMMA):
            yield f"sum {column}", total.astype(np.float64)
            if (values < 0).any():
                yield f"share {column} > 0", _ratio(np.bincount(some, values > 0, num_nodes), count)


def _shares(
    column: str, columns: Columns, nodes: NDArray[np.int32], edges: NDArray[np.int64], num_nodes: int
) -> Iterator[tuple[str, Floats]]:
    """The share of each frequent level among a node's edges whose level is known."""
    codes, texts = columns.levels(column)
    level = codes[edges]
    count = np.bincount(nodes[level >= 0], minlength=num_nodes)
    frequency = np.bincount(codes[codes >= 0], minlength=len(texts))
    for code in np.argsort(-frequency, kind="stable")[:MOST_LEVELS].tolist():
        yield (
            f"share {column}={texts[code].as_py()}",
            _ratio(np.bincount(nodes[level == code], minlength=num_nodes), count),
        )


def _ratio(total: NDArray[np.generic], count: NDArray[np.int64]) -> Floats:
    """Their quotient, NaN where the count is 0."""
    ratio = np.full(len(count), np.nan)
    np.divide(total, count, out=ratio, where=count > 0)
    return ratio
