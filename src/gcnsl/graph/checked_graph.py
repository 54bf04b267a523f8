"""Graph: the ``Data`` of this package, whose names, arcs and columns follow its nodes."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.data.storage import GlobalStorage

from gcnsl.graph.edges import ALONG, EDGE_FACTS, EdgeReport, report_edges
from gcnsl.sparse import take_rows

OF_THE_WHOLE = ("benchmark", "notes", "provenance", "counted_unknown", "edge_columns")
"""Attributes that are true of a graph as it was read, but not of a part of it or after a change."""
_FEW, _WIDTH = 5, 60


class _Storage(GlobalStorage):  # type: ignore[misc]
    """Attributes, of which only tensors belong to nodes or edges, even if there are as many names as nodes."""

    def is_node_attr(self, key: str) -> bool:
        """Whether there is a row for each node."""
        return isinstance(self[key], Tensor) and bool(super().is_node_attr(key))

    def is_edge_attr(self, key: str) -> bool:
        """Whether there is a row for each edge."""
        return isinstance(self[key], Tensor) and bool(super().is_edge_attr(key))


class Graph(Data):  # type: ignore[misc]
    """A checked graph: a ``torch_geometric.data.Data`` with n nodes, E entries of ``edge_index`` and E' arcs.

    Attributes:
        x: Features (n × d, float32), dense or torch CSR.
        edge_index: The edges (2 × E), simple, undirected and sorted: see :mod:`gcnsl.graph.edges`.
        edge_weight: Their weights (E), if there are some.
        arc_index, arc_weight: The edges with their directions (2 × E') and weights (E'), if the graph is directed.
        edge_relations, arc_relations: Their weights by relation (E × R, E' × R), if there are several kinds of edges.
        y: Class numbers (n), -1 for an unlabelled node; ``class_names`` are the classes, in the type of the labels.
        train_mask, val_mask, test_mask: The split (n), or several (n × splits).
        node_ids: The caller's names for the nodes, a ``pandas.Index`` (n): ``get_loc(name)`` is the number of a node.
        node_names: What to call the nodes where people read of them, a ``pandas.Index`` (n); ``name_column`` is whence.
        feature_names: Names of the columns of ``x`` (d).
        columns, encoder: The table that ``x`` was encoded from, and how; see :mod:`gcnsl.graph.column_encoder`.
        edge_report: What was found in the list of edges, a :class:`gcnsl.graph.EdgeReport`.
    """

    def __init__(self, *tensors: Any, **attributes: Any) -> None:
        super().__init__(*tensors, **attributes)
        object.__setattr__(self._store, "__class__", _Storage)

    @property
    def num_classes(self) -> int:
        """The number of classes (C); the graphs of a batch have the same, each a list of its own."""
        names = self.get("class_names") or ()
        return len(names[0] if names and isinstance(names[0], list) else names)

    def subgraph(self, subset: Tensor) -> Graph:
        """The checked graph of some nodes, given by numbers or a mask, and of the edges between them."""
        n, kept = self.num_nodes, torch.arange(self.num_nodes)[subset.cpu()]
        place = torch.full((n,), -1).index_copy(0, kept, torch.arange(len(kept)))
        part = copy.copy(self)
        for key in OF_THE_WHOLE:
            part[key] = None
        for key, value in self.to_dict().items():
            if isinstance(value, Tensor) and key not in ("edge_index", *EDGE_FACTS) and self.is_node_attr(key):
                part[key] = take_rows(value.cpu(), kept.numpy()).to(value.device) if key == "x" else value[kept]
        for index, along in ALONG.items():
            if index in self:
                ends = place[self[index].cpu()]
                among = (ends >= 0).all(dim=0).nonzero()[:, 0]
                order = among[torch.argsort(ends[0, among] * n + ends[1, among])]
                part[index] = ends[:, order].to(self[index].device)
                part.update({name: self[name][order.to(self[name].device)] for name in along if name in self})
        for key in ("node_ids", "node_names"):
            if self.get(key) is not None:
                part[key] = self[key][kept.numpy()]
        if "columns" in self:
            part.columns = self.columns.take(kept.numpy())
        part.edge_report = report_edges(part)
        return part

    def __repr__(self) -> str:
        shapes = (f"{key}={list(value.shape)}" for key, value in self.to_dict().items() if isinstance(value, Tensor))
        return f"{type(self).__name__}({', '.join(shapes)})"

    def __str__(self) -> str:
        report, entries, told = self.get("edge_report"), self.num_edges, self.to_dict()
        edges = report.edges if isinstance(report, EdgeReport) else entries
        if isinstance(report, EdgeReport) and 2 * edges - report.loops != entries:  # edges were changed since
            edges = entries
            del told["edge_report"]
        counts = {"nodes": self.num_nodes, "edges": edges, "features": self.num_features}
        counts |= {"classes": self.num_classes} if self.num_classes else {}
        title = ", ".join(f"{count:,} {what}" for what, count in counts.items())
        parts = (f"\n  {key:<13} {_in_short(value)}" for key, value in told.items() if _is_told(value))
        return f"{self.get('name') or type(self).__name__}: {title}{''.join(parts)}"


def node_titles(graph: Data, nodes: NDArray[np.int64]) -> NDArray[Any]:
    """What some nodes are called where people read of them, by their numbers: ``name (id)``, the id, or the number."""
    ids, names = graph.get("node_ids"), graph.get("node_names")
    own: NDArray[Any] = nodes if ids is None else ids.to_numpy()[nodes]
    if names is None:
        return own
    pairs = zip(names[nodes], own, strict=True)
    return np.array([f"{name} ({of})" if name else str(of) for name, of in pairs], dtype=object)


def _is_told(value: Any) -> bool:
    return isinstance(value, Tensor | pd.Index | str | dict | list | tuple) and len(value) > 0


def _in_short(value: Any) -> str:
    """A value in a line."""
    if isinstance(value, Tensor):
        layout = "" if value.layout == torch.strided else f", {value.layout}"
        device = "" if value.device.type == "cpu" else f", {value.device}"
        return f"{list(value.shape)} {value.dtype}{layout}{device}".replace("torch.", "")
    if isinstance(value, EdgeReport):
        return ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in value._asdict().items())
    if isinstance(value, list | pd.Index):
        more = f" and {len(value) - _FEW:,} more" if len(value) > _FEW else ""
        shown = ", ".join(map(str, value[:_FEW]))
        return (shown if len(shown) <= _WIDTH else f"{shown[:_WIDTH]}…") + more
    return str(value) if isinstance(value, str | dict) else type(value).__name__
