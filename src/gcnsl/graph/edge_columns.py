"""Columns of edges as columns of the nodes at their ends: counts, sums, means, maxima, shares, and the last date.

For a node i with the edges E_i and the values v_e of a column, missing ones left out:

- a number gives Σ v_e, the mean and the maximum over E_i; if some values are negative, Σ max(v_e, 0), Σ max(-v_e, 0)
  and the share above 0 in place of the sum;
- 0 and 1, and each of the most frequent levels of a category, give the share of the edges that have it;
- a date gives the mean and the latest one, in days, so that their distance is the time since the last edge.

In a directed graph, edges that leave a node and edges that enter it are kept apart. Means, maxima and shares of a node
without edges are missing; its sums and counts are 0. Nothing is learned here but which columns there are, so the
columns of a grown graph are made in the same way.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gcnsl.graph.columns import DECIMAL_COMMA, Columns

MOST_LEVELS = 20
"""Of more levels, the most frequent have a column each."""

Floats = NDArray[np.float64]
Ints = NDArray[np.signedinteger]


def edge_columns(
    columns: Columns, ends: Ints, num_nodes: int, *, directed: bool, everything: bool = False
) -> dict[str, pa.Array]:
    """The columns of the nodes (n rows) that the columns of the edges and the ends of the edges (2 × E) make, by name.

    A repeated edge counts as often as it is listed. Columns that are the same for all nodes are left out, unless
    ``everything`` is asked for that a model could know.
    """
    made = {
        f"{view}: {name}": pa.array(values, from_pandas=True)
        for view, nodes, edges in _views(ends, directed=directed)
        for name, values in _of_view(columns, nodes, edges, num_nodes, everything=everything)
    }
    return {name: column for name, column in made.items() if everything or pc.count_distinct(column).as_py() > 1}


def _views(ends: Ints, *, directed: bool) -> Iterator[tuple[str, Ints, Ints]]:
    """Each kind of edges of a node: its name, and pairs of a node and the row of an edge."""
    rows = np.arange(ends.shape[1])
    if directed:
        yield "out-edges", ends[0], rows
        yield "in-edges", ends[1], rows
    else:
        other = ends[0] != ends[1]  # a loop is one edge of its node
        yield "edges", np.concatenate([ends[0], ends[1, other]]), np.concatenate([rows, rows[other]])


def _of_view(
    columns: Columns, nodes: Ints, edges: Ints, num_nodes: int, *, everything: bool
) -> Iterator[tuple[str, Floats]]:
    """The columns that pairs of a node and an edge make, by name."""
    yield "count", np.bincount(nodes, minlength=num_nodes).astype(np.float64)
    for column, kind in columns.used.items():
        if kind == "category":
            codes, texts = columns.levels(column)
            level = codes[edges]
            count = np.bincount(nodes[level >= 0], minlength=num_nodes)
            often = np.argsort(-np.bincount(codes[codes >= 0], minlength=len(texts)), kind="stable")
            for code in often[: None if everything else MOST_LEVELS].tolist():
                has_it = np.bincount(nodes[level == code], minlength=num_nodes)
                yield f"share {column}={texts[code].as_py()}", _ratio(has_it, count)
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
        largest = np.full(num_nodes, -np.inf)
        np.maximum.at(largest, some, values)
        largest[count == 0] = np.nan
        yield f"{'max' if kind in ('number', DECIMAL_COMMA) else 'last'} {column}", largest
        if kind in ("number", DECIMAL_COMMA):
            if (values < 0).any() or everything:
                yield f"sum {column} > 0", np.bincount(some, np.maximum(values, 0.0), num_nodes).astype(np.float64)
                yield f"sum {column} < 0", np.bincount(some, np.maximum(-values, 0.0), num_nodes).astype(np.float64)
                yield f"share {column} > 0", _ratio(np.bincount(some, values > 0, num_nodes), count)
            if (values >= 0).all() or everything:
                yield f"sum {column}", total.astype(np.float64)


def _ratio(total: NDArray[np.generic], count: Ints) -> Floats:
    """Their quotient, NaN where the count is 0."""
    ratio = np.full(len(count), np.nan)
    np.divide(total, count, out=ratio, where=count > 0)
    return ratio
