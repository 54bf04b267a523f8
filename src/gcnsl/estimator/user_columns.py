"""The columns of the user's table: which features come from each, and how sources of a prediction are named by them."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from torch_geometric.data import Data

from gcnsl.checks import UNLABELLED
from gcnsl.estimator.node_classifier import NodeClassifier
from gcnsl.graph.columns import is_number, sort_of
from gcnsl.plain.neighbour_columns import DEGREE, NEAR, NEAR_KNOWN, OWN, SELF_KNOWN, TWIN, Source
from gcnsl.sparse import adjacency_matrix, to_scipy
from gcnsl.spectral.structural_features import FEATURE_NAMES

TWINS_KNOWN, NEAR_UNKNOWN = "{label}: the class of those linked most alike", "neighbours of unknown class"


def columns_of(graph: Data) -> list[str]:
    """The column of the table that each feature of a graph comes from (d); without a table, each is its own."""
    encoder, names = graph.get("encoder"), graph.get("feature_names")
    if encoder is not None:
        return list(encoder.feature_columns)
    return names or [f"feature {number}" for number in range(graph.num_features)]


class UserColumns:
    """How what a prediction rests on is called, and its value at a node.

    Args:
        classifier: A fitted one.
        node: The number of the node.
    """

    def __init__(self, classifier: NodeClassifier, node: int = 0) -> None:
        self._classifier, self._graph, self._node = classifier, classifier.graph_, node
        self._columns = columns_of(self._graph)
        self._places = {name: place for place, name in reversed(list(enumerate(self._columns)))}

    @cached_property
    def features(self) -> list[str]:
        """The names of the features that the models read: the graph's own, and structural ones behind them."""
        return [*(self._graph.get("feature_names") or self._columns), *FEATURE_NAMES]

    def summary_of(self, source: Source, *, is_crowd: bool) -> Source:
        """What a source is counted to: a feature to the first feature of its column, one of a crowd to its class."""
        text, number = source
        if number is not None and "{feature}" in text:
            return Source(text, self._places[self._columns[number]])
        if number is None or "{node}" not in text or not is_crowd:
            return source
        known = int(self._classifier.y_[number])
        if text == TWIN:
            return Source(TWINS_KNOWN, known)
        return Source(NEAR_UNKNOWN) if known == UNLABELLED else Source(NEAR_KNOWN, known)

    def column(self, source: Source) -> str | None:
        """The column that a source is about, if it is about any."""
        return self._columns[source.number] if "{feature}" in source.text and source.number is not None else None

    def told(self, source: Source) -> tuple[str, float | str | None]:
        """The name of a source, and its value at the node."""
        text, number = source
        if number is None:
            return text, self._of_node(text)
        names: dict[str, Any] = {}
        if "{feature}" in text:
            names["feature"] = self._columns[number]
        elif "{label}" in text:
            names["label"] = self._classifier.classes_[number]
        else:
            ids = self._classifier.node_ids_
            names["node"] = number if ids is None else ids[number]
        value: float | str | None = None
        if text == OWN:
            value = self._value(self._columns[number])
        elif text == NEAR:
            value = self._around(self._columns[number])
        elif text == NEAR_KNOWN:
            known = self._classifier.y_[self._neighbours]
            value = f"{int((known == number).sum())} of {int((known != UNLABELLED).sum())}"
        return text.format(**names), value

    def _of_node(self, text: str) -> float | str | None:
        if text == DEGREE:
            return float(len(self._neighbours))
        known = int(self._classifier.y_[self._node])
        return str(self._classifier.classes_[known]) if text == SELF_KNOWN and known != UNLABELLED else None

    @cached_property
    def _neighbours(self) -> Any:
        links = adjacency_matrix(self._graph.edge_index, self._graph.num_nodes, self_loops=False)
        return links[[self._node]].indices

    def _kind(self, column: str) -> str:
        encoder = self._graph.get("encoder")
        return "number" if encoder is None else str(encoder.kinds.get(column, "list"))  # wide features are like tokens

    def _row(self, nodes: Any) -> dict[str, float]:
        """The mean of the features of some nodes by name, in the unit of the table."""
        values = to_scipy(self._graph.x)[nodes].mean(axis=0, dtype=np.float64)
        encoder = self._graph.get("encoder")
        return dict(
            zip(self.features, (values if encoder is None else encoder.own_units(values)).tolist(), strict=False)
        )

    def _value(self, column: str) -> float | str | None:
        """The value of the node in a column: a number, a date, or the level or tokens that it has."""
        row, kind = self._row([self._node]), self._kind(column)
        if is_number(kind):
            if row.get(f"{column} (missing)"):
                return "missing"
            return str(np.datetime64(round(row[column] * 86_400), "s"))[:10] if sort_of(kind) == "date" else row[column]
        return None if kind == "text" else ", ".join(self._parts(column, row)) or "other"

    def _around(self, column: str) -> str | None:
        """The mean over the node's neighbours of a column of numbers, or the most frequent level of a category."""
        kind = self._kind(column)
        if not len(self._neighbours) or kind == "text" or sort_of(kind) == "date":
            return None
        row = self._row(self._neighbours)
        if is_number(kind):
            return f"mean {row[column]:.4g}"
        parts = self._parts(column, row)
        best = max(parts, key=parts.__getitem__, default=None)
        return None if best is None else f"{best} {parts[best]:.0%}"

    def _parts(self, column: str, row: dict[str, float]) -> dict[str, float]:
        """The levels or tokens of a column that a row has."""
        named = {name: row[name] for name, of in zip(self.features, self._columns, strict=False) if of == column}
        return {name[len(column) :].lstrip("=: ").strip("()"): value for name, value in named.items() if value}
