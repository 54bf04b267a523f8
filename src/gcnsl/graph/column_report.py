"""What each column of a table holds, what becomes of it, and what its owner may want to change.

Whole numbers may be quantities or codes, and the edges can tell: linked nodes often have something in common. If that
is a quantity, such as the year of birth, then edges join close values more often than distant ones. If it is a code,
such as the number of a dormitory, then they join equal values more often than chance, but of unequal values close ones
no more often than distant ones. No label is looked at.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from gcnsl.graph.column_encoder import ColumnEncoder
from gcnsl.graph.columns import LEAST_IDS, Columns, is_number, is_of_edges, sort_of, written_number
from gcnsl.graph.tables import Table

MOST_CODES, ROWS_PER_CODE = 100, 10
"""If edges do not tell, 3 to MOST_CODES whole numbers look like codes, given at least ROWS_PER_CODE rows for each."""
MOST_TESTED = 200
"""In a table with more columns, the edges are not looked at: it would take too long."""
MOSTLY = 0.8
"""Text looks like numbers with a few mistakes if at least this share of the rows are numbers."""
LEAST_VALUES = 6
"""The edges do not tell codes from quantities if they join fewer distinct values."""
MOST_EDGES = 20_000
"""If there are more edges, this many are drawn at random."""
LEAST_DEVIATION = 5.0
"""More than chance is this many standard deviations: many, as edges are not independent."""

MOST_BINS, TELLS = 64, 0.75
"""Numbers are cut into so many ranges; a column tells the label if it makes so many of the errors of a guess right."""

Advice = tuple[str | None, str | None]
"""A remark on a column, and the remedy."""


@dataclass(frozen=True)
class ColumnSummary:
    """One column of a table of nodes or edges, in values that JSON can hold."""

    name: str
    kind: str
    example: str
    distinct: int
    missing: int
    features: int
    """How many features it becomes."""
    treatment: str
    """What is done with it."""
    remark: str | None
    """What looks wrong with that, if anything does."""
    remedy: str | None
    """The argument of :func:`gcnsl.from_tables` in which to name the column to change that."""
    table: str = "nodes"


def summarize_columns(data: Data) -> tuple[ColumnSummary, ...]:
    """Summarize the columns of a graph that was read from a table; there are none if it was not."""
    columns, encoder = data.get("columns"), data.get("encoder")
    if columns is None:
        if data.get("table") is None:
            return ()
        names = data.feature_names
        columns = Columns.read(Table(pa.table(list(data.x.numpy().T), names=names), data.table), names)
        encoder = ColumnEncoder.fit(columns)
    features = Counter(encoder.feature_columns)
    ends = some_edges(data.edge_index if len(columns.kinds) <= MOST_TESTED else data.edge_index[:, :0])
    own = [name for name in columns.kinds if not (columns.edge_kinds and is_of_edges(name))]
    found = [_summary(name, columns, encoder, features=features[name], ends=ends) for name in own]
    if columns.wide is not None:
        name, names, matrix = columns.wide
        treatment = f"as they are; {matrix.nnz:,} are not 0"
        found.append(
            ColumnSummary(name, "numbers, mostly 0", names[0], len(names), 0, len(names), treatment, None, None)
        )
    return (*found, *(data.get("edge_columns") or ()))


def summarize_edge_columns(columns: Columns, made: Iterable[str]) -> tuple[ColumnSummary, ...]:
    """Summarize the columns of edges, of which these columns of the nodes are made."""
    found = []
    for name, kind in columns.kinds.items():
        values = columns.table.columns[name]
        count = sum(
            what == name or what.startswith((f"{name}=", f"{name} "))
            for what in (made_name.partition(": ")[2].partition(" ")[2] for made_name in made)
        )
        how = "sum, mean, max of a node's edges" if sort_of(kind) == "number" else "share of each value"
        how = "mean, last of a node's edges" if sort_of(kind) == "date" else how
        how = how if count else "left out"
        by = columns.relations
        how += f"; {len(by.names)} kinds of edges" if by and name in (by.column, by.signed) else ""
        missing, distinct = values.null_count, len(values.unique().drop_null())
        example = columns.example(name)
        found.append(ColumnSummary(name, kind, example, distinct, missing, count, how, None, None, "edges"))
    return tuple(found)


def _summary(
    name: str, columns: Columns, encoder: ColumnEncoder, *, features: int, ends: NDArray[np.int64]
) -> ColumnSummary:
    kind, example = columns.kinds[name], columns.example(name)
    if is_number(kind):
        values = columns.numbers(name, kind)
        known = values[~np.isnan(values)]
        distinct = len(np.unique(known))
        is_date = sort_of(kind) == "date"
        advice = (None, None) if is_date else _advice_on_numbers(values, distinct, ends)
        treatment = ", ".join(["days" if is_date else "as it is", *encoder.parts.get(name, ())])
        if len(known) < len(values):
            treatment += ", gaps the median and marked"
        return ColumnSummary(name, kind, example, distinct, len(values) - len(known), features, treatment, *advice)
    codes, texts = columns.levels(name)
    treatment = "left out"
    if kind == "category":
        treatment = "one-hot" + (", rare values together" if encoder.levels[name].rare else "")
    elif sort_of(kind) == "list":
        treatment = "one-hot of frequent tokens"
    elif kind == "text":
        treatment = "TF-IDF of words and n-grams, SVD"
    advice = _advice_on_text(kind, codes[codes >= 0], texts)
    return ColumnSummary(name, kind, example, len(texts), int((codes < 0).sum()), features, treatment, *advice)


def _advice_on_text(kind: str, codes: NDArray[np.int64], texts: pa.Array) -> Advice:
    """A remark on a column of text, given as :meth:`Columns.levels` returns it, and the remedy."""
    is_number = np.array([not math.isnan(written_number(text)) for text in texts.to_pylist()], dtype=bool)
    if len(codes) and MOSTLY <= is_number[codes].mean() < 1:
        other = texts.filter(pa.array(~is_number))[0].as_py()
        return f"mostly numbers, but {other!r} is none: leave such cells empty, and it is a number", None
    return ("different in every row: an id", "categorical") if kind == "id" else (None, None)


def _advice_on_numbers(values: NDArray[np.float64], distinct: int, ends: NDArray[np.int64]) -> Advice:
    """A remark on a column of numbers, and the remedy."""
    known, rows = values[~np.isnan(values)], len(values)
    whole = bool((known == np.round(known)).all())
    if whole and distinct == rows >= LEAST_IDS:
        return "whole numbers, different in every row: an id?", "drop"
    if not whole or (known < 0).any():
        return None, None
    codes = are_codes(values, ends)
    if codes:
        return "edges join equal values, but not close ones, more often than chance: codes?", "categorical"
    if codes is None and 3 <= distinct <= min(MOST_CODES, rows // ROWS_PER_CODE):
        return "few whole numbers: codes rather than quantities?", "categorical"
    return None, None


def some_edges(edge_index: Tensor) -> NDArray[np.int64]:
    """Return the ends of up to :data:`MOST_EDGES` edges (2 × E'), each in one direction, without loops."""
    once: NDArray[np.int64] = edge_index[:, edge_index[0] < edge_index[1]].numpy()
    if once.shape[1] <= MOST_EDGES:
        return once
    return once[:, np.random.default_rng(0).choice(once.shape[1], MOST_EDGES, replace=False)]


def are_codes(values: NDArray[np.floating[Any]], ends: NDArray[np.int64]) -> bool | None:
    """Return whether whole numbers (n, NaN where missing) are codes; ``None`` if these edges (2 × E) do not tell.

    Nodes with 0 do not count: it often stands for "unknown" in both codes and quantities.
    """
    there = (np.nan_to_num(values) != 0)[ends].all(axis=0)
    levels, places = np.unique(values[ends[:, there]], return_inverse=True)
    if len(levels) < LEAST_VALUES:
        return None
    ranks = places.reshape(2, -1)
    distance = np.abs(ranks[0] - ranks[1])
    share = np.bincount(ranks.ravel()) / ranks.size
    equal = float((share**2).sum())  # what chance gives: the share of edges that join equal values,
    up_to = share.cumsum()
    mean = 2 * float((up_to * (1 - up_to)).sum()) / (1 - equal)  # and the mean and the variance of the distance in
    variance = 2 * float(ranks.var()) / (1 - equal) - mean**2  # rank of unequal ones
    apart = distance[distance > 0]
    if len(apart) and apart.mean() < mean - LEAST_DEVIATION * math.sqrt(variance / len(apart)):
        return False
    deviation = math.sqrt(equal * (1 - equal) / len(distance))
    return True if (distance == 0).mean() > equal + LEAST_DEVIATION * deviation else None


def telling_columns(columns: Columns, y: NDArray[np.int64]) -> dict[str, float]:
    """The columns that tell the label (n, -1 for none) by themselves, far better than others do, and their accuracy.

    The accuracy is out of fold: a value stands for the class that most nodes with it have in the other of two folds.
    """
    rows = np.flatnonzero(y >= 0)
    own = [
        name
        for name in columns.used
        if not (columns.edge_kinds and is_of_edges(name)) and sort_of(columns.kinds[name]) != "text"
    ]
    if len(rows) < LEAST_IDS or len(own) > MOST_TESTED:
        return {}
    shuffled = np.random.default_rng(0).permutation(rows)
    y, folds = y[shuffled], np.arange(len(rows)) % 2
    most_frequent = float(np.bincount(y).max() / len(y))
    found = {}
    for name in own:
        if is_number(columns.kinds[name]):
            values = columns.numbers(name, columns.kinds[name])[shuffled]
            cuts = np.unique(values[~np.isnan(values)])
            cuts = cuts if len(cuts) <= MOST_BINS else np.quantile(cuts, np.linspace(0, 1, MOST_BINS))
            codes = np.where(np.isnan(values), len(cuts) + 1, np.searchsorted(cuts, values))
        else:
            codes = columns.levels(name)[0][shuffled] + 1
        right = 0
        for fold in (0, 1):
            table = np.zeros((int(codes.max()) + 1, int(y.max()) + 1), dtype=np.int64)
            np.add.at(table, (codes[folds != fold], y[folds != fold]), 1)
            here = codes[folds == fold]
            right += int(((table.max(axis=1)[here] > 0) & (table.argmax(axis=1)[here] == y[folds == fold])).sum())
        found[name] = right / len(y)
    usual = float(np.median(list(found.values()))) if len(found) > 2 else 0.0
    limit = max(1 - (1 - TELLS) * (1 - most_frequent), (1 + usual) / 2)
    return {name: share for name, share in sorted(found.items(), key=lambda pair: -pair[1]) if share >= limit}
