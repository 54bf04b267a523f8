"""Relations: the kinds of edges that models tell apart, by a column of the edges and by the sign of their weights."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gcnsl.graph.columns import Columns
from gcnsl.graph.masks import GraphWarning
from gcnsl.graph.tables import Table

MOST_RELATIONS = 8
"""Of more kinds, the most frequent are relations, and all others together are another one."""
OTHER, UNKNOWN = "other", "unknown"
"""The name of the relation of all others, and the kind of edges whose kind is missing."""
LARGEST_WEIGHT = 1e30
"""Weights of both signs are cut off here, so that float32 can hold their sums."""

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Relations:
    """What tells the edges of a graph apart, as it was decided for the graph that a model is trained on.

    Attributes:
        column: The column of the edges with their kinds, if there is one.
        signed: The column with weights of both signs, if there is one.
        names: The relations (R); if there are ``others``, the last one is all of these.
        others: The kinds that are too rare for a relation of their own.
        weighted: Whether the edges had weights otherwise.
    """

    column: str | None
    signed: str | None
    names: list[str]
    others: list[str]
    weighted: bool = False

    @classmethod
    def find(cls, table: Table, column: str | None, signed: str | None, *, weighted: bool = False) -> Relations | None:
        """The relations in a table of edges; ``None`` if all edges are of one."""
        codes, names, _ = _kinds(table, column, signed)
        counts = zip(np.bincount(codes, minlength=len(names)).tolist(), names, strict=True)
        ranked = [name for _, name in sorted((-count, name) for count, name in counts if count)]
        kept, others = ranked[:MOST_RELATIONS], ranked[MOST_RELATIONS:]
        names = kept + [OTHER] * bool(others)
        return cls(column, signed, names, others, weighted) if len(names) > 1 else None

    def of(self, table: Table, weights: Floats | None) -> tuple[Ints, int, Floats | None]:
        """The relation of each row of a table of edges (E; -1 for none), how many there are, and the weights (E).

        Weights of both signs have their sizes. A warning says if there are kinds that training did not have.
        """
        codes, names, sizes = _kinds(table, self.column, self.signed)
        own = self.names[: len(self.names) - bool(self.others)]
        number = {name: number for number, name in enumerate(own)} | dict.fromkeys(self.others, len(own))
        is_new = np.array([name not in number for name in names])[codes]
        if is_new.any():
            told = f"{int(is_new.sum()):,} edges are of kinds that training did not have, such as"
            what = f"count as {OTHER!r}" if self.others else "are left out"
            sentence = f"{told} {names[codes[is_new.argmax()]]!r}: they {what} where methods tell kinds apart"
            warnings.warn(sentence, GraphWarning, stacklevel=3)
        last = len(own) if self.others else -1
        codes = np.array([number.get(name, last) for name in names])[codes]
        return codes, len(self.names), weights if sizes is None and self.weighted else sizes


def _kinds(table: Table, column: str | None, signed: str | None) -> tuple[Ints, list[str], Floats | None]:
    """The number of the kind of each edge (E), the names of the kinds, and the sizes of weights with signs (E)."""
    codes, names, weights = np.zeros(table.arrow.num_rows, dtype=np.int64), [""], None
    if column is not None:
        codes, texts = Columns.for_kinds(table, {column: "category"}).levels(column)
        names = [*texts.to_pylist(), UNKNOWN]
        codes = np.where(codes < 0, len(texts), codes)
    if signed is not None:
        values = np.nan_to_num(Columns.for_kinds(table, {signed: "number"}).numbers(signed, "number"))
        codes, weights = 2 * codes + (values > 0), np.abs(values).clip(max=LARGEST_WEIGHT)
        names = [f"{sign} {name}".strip() for name in names for sign in ("negative", "positive")]
    return codes, names, weights
