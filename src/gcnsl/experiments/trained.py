"""A classifier trained on one split of a graph, and what is to be said of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from gcnsl.errors import InputError
from gcnsl.estimator import GCNSLClassifier
from gcnsl.experiments.learned_graph import learned_agreement
from gcnsl.graph import UNLABELLED, edge_homophily
from gcnsl.methods import split_count

_PLACE = ("device", "checkpoint", "checkpoint_every", "on_epoch")
"""Parameters of a classifier that say where it is trained, not what it learns."""


@dataclass(frozen=True)
class GraphFacts:
    """How many edges a graph has (undirected), and how often their ends agree, as far as labels are known.

    ``density`` is the share of all pairs of nodes that are joined. Near 1 a graph tells nothing of its nodes: learning
    can end there, where all nodes have become alike.
    """

    edges: int
    homophily: float | None
    density: float


@dataclass(frozen=True)
class TrainingReport:
    """What came of training.

    Attributes:
        graph: Its name.
        run: Which of its splits.
        device: Where training took place.
        nodes: How many nodes were for ``"train"``, ``"val"`` and ``"test"``.
        accuracy: The shares of them that are classified rightly; ``None`` where there are none.
        epochs, best_epoch, stopped, seconds: See :class:`gcnsl.training.History`.
        original: The given graph.
        reconnected: The learned graph A*, loops left out; ``None`` where none is learned.
        options: All hyper-parameters.
    """

    graph: str
    run: int
    device: str
    nodes: dict[str, int]
    accuracy: dict[str, float | None]
    epochs: int
    best_epoch: int
    stopped: str
    seconds: float
    original: GraphFacts
    reconnected: GraphFacts | None
    options: dict[str, Any]


def fit_split(classifier: GCNSLClassifier, data: Data, *, run: int = 0, all_labels: bool = False) -> None:
    """Fit a classifier to the training nodes of a split; validation nodes say when to stop, test nodes are held back.

    Args:
        classifier: Not fitted yet.
        data: A graph with labels and masks (n × runs). Without validation nodes some of the training nodes are drawn.
        run: Which split.
        all_labels: Learn from every label that is not for validation, and hold nothing back.
    """
    labels, masks = _labels(data), _masks(data, run)
    shown = data.y >= 0 if all_labels else masks["train"] | masks["val"]
    classifier.fit(
        data.x,
        [label if known else None for label, known in zip(labels, shown.tolist(), strict=True)],
        edge_index=data.edge_index,
        val_mask=masks["val"] if masks["val"].any() else None,
        node_ids=data.get("node_ids"),
    )


def report_on(classifier: GCNSLClassifier, data: Data, *, run: int = 0) -> TrainingReport:
    """Say what came of :func:`fit_split`."""
    labels, masks = _labels(data), _masks(data, run)
    held_back = masks["test"].numpy() & (classifier.y_ == UNLABELLED)
    parts = {"train": classifier.train_mask_, "val": classifier.val_mask_, "test": held_back}
    right = classifier.predict() == labels
    history = classifier.history_
    return TrainingReport(
        graph=data.get("name") or "graph",
        run=run,
        device=str(next(classifier.model_.parameters()).device),
        nodes={name: int(mask.sum()) for name, mask in parts.items()},
        accuracy={name: float(right[mask].mean()) if mask.any() else None for name, mask in parts.items()},
        epochs=len(history),
        best_epoch=history.best_epoch,
        stopped=history.stopped,
        seconds=history.seconds,
        original=_facts(data.edge_report.edges, _or_none(edge_homophily(data.edge_index, data.y)), len(labels)),
        reconnected=_reconnected(classifier, data.y),
        options={name: value for name, value in classifier.get_params().items() if name not in _PLACE},
    )


def _labels(data: Data) -> NDArray[Any]:
    """The names of the nodes' classes, ``None`` for unlabelled ones (n)."""
    if data.get("y") is None:
        raise InputError("the graph has no labels: name the column that holds the classes (--label), and fill it")
    names = np.array([*data.class_names, None], dtype=object)
    labels: NDArray[Any] = names[data.y.numpy()]
    return labels


def _masks(data: Data, run: int) -> dict[str, Tensor]:
    """The three masks of a run (n each); those that the graph does not have are empty."""
    count = split_count(data)
    if not 0 <= run < count:
        raise InputError(f"run({run}) must be >= 0 and below {count}, the number of the graph's splits")
    train = data.train_mask.reshape(len(data.y), -1)[:, run]
    others = {name: data.get(f"{name}_mask") for name in ("val", "test")}
    return {"train": train} | {
        name: (train & False) if mask is None else mask.reshape(len(data.y), -1)[:, run]
        for name, mask in others.items()
    }


def _reconnected(classifier: GCNSLClassifier, y: Tensor) -> GraphFacts | None:
    device = next(classifier.model_.parameters()).device
    inputs = tuple(value.to(device) for value in classifier.graph_.inputs)
    learned = learned_agreement(classifier.model_, inputs, y)
    return None if learned is None else _facts(round(learned.degree * len(y) / 2), learned.homophily, len(y))


def _facts(edges: int, homophily: float | None, n: int) -> GraphFacts:
    return GraphFacts(edges, homophily, edges / max(1, n * (n - 1) // 2))


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value
