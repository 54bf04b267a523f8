"""How good predictions are: all metrics, each class by itself, and which classes are taken for which."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import confusion_matrix
from torch_geometric.data import Data

from gcnsl.checks import UNLABELLED
from gcnsl.errors import InputError
from gcnsl.estimator import NodeClassifier
from gcnsl.estimator.grown_graph import in_training_order
from gcnsl.training.metrics import Floats, Ints, calibration_bins, measure, most_probable

Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class ClassQuality:
    """A class: its number of nodes, and how well it is found.

    All shares are ``None`` for a class without nodes, and so is the precision of one that is never predicted.
    """

    name: str
    nodes: int
    precision: float | None
    recall: float | None
    f1: float | None


@dataclass(frozen=True)
class Quality:
    """How good predictions are.

    Attributes:
        nodes: Number of nodes that were counted.
        metrics: By name, see :data:`gcnsl.training.METRICS`.
        classes: One entry per class.
        confusion: Numbers of nodes (C × C): a row for each true class, a column for each predicted one.
        calibration: Nodes in 15 equal bins of the predicted class's probability: ``nodes``, mean ``confidence`` and
            ``accuracy``.
    """

    nodes: int
    metrics: dict[str, float]
    classes: list[ClassQuality]
    confusion: list[list[int]]
    calibration: dict[str, list[float]]


def quality_of(probabilities: Floats, y: Ints, class_names: Sequence[Any]) -> Quality:
    """Judge the probabilities (n × C) of nodes by their class numbers (n)."""
    predicted, numbers = most_probable(probabilities), np.arange(len(class_names))
    confusion, bins = confusion_matrix(y, predicted, labels=numbers), calibration_bins(probabilities, y)
    counts = zip(*(each.tolist() for each in (confusion.diagonal(), confusion.sum(1), confusion.sum(0))), strict=True)
    return Quality(
        nodes=len(y),
        metrics=measure(probabilities, y),
        classes=[_class_quality(name, *count) for name, count in zip(map(str, class_names), counts, strict=True)],
        confusion=confusion.tolist(),
        calibration={name: values.tolist() for name, values in bins._asdict().items()},
    )


def _class_quality(name: str, right: int, nodes: int, called: int) -> ClassQuality:
    """A class of so many nodes, of which some are right, and so many that are called so."""
    if not nodes:
        return ClassQuality(name, 0, None, None, None)
    return ClassQuality(name, nodes, right / called if called else None, right / nodes, 2 * right / (nodes + called))


@dataclass(frozen=True)
class NodeLabels:
    """What the labels of a checked graph tell of its nodes (n each).

    Attributes:
        truth: The classifier's numbers of their classes; -1 where there is no label, or one that it does not know.
        labelled: Whether they have a label.
        used: Whether training or validation used it.
        place: Their numbers in the training graph; new nodes have those that follow.
    """

    truth: Ints
    labelled: Bools
    used: Bools
    place: Ints

    @property
    def unseen(self) -> Bools:
        """The nodes by whose labels a classifier can be judged."""
        unseen: Bools = self.labelled & ~self.used & (self.truth != UNLABELLED)
        return unseen


def node_labels(classifier: NodeClassifier, data: Data) -> NodeLabels:
    """Read the labels of the training graph, or of one that has grown since, as a classifier numbers its classes."""
    y = np.full(data.num_nodes, UNLABELLED) if data.y is None else data.y.numpy()
    names = [str(c) for c in classifier.classes_]
    given = [str(c) for c in data.get("class_names") or ()] if data.y is not None else []
    number = np.array([names.index(name) if name in names else UNLABELLED for name in (*given, None)])
    _, place = in_training_order(classifier.graph_, data)
    used = np.append(classifier.train_mask_ | classifier.val_mask_, np.zeros(len(place), dtype=bool))[place]
    return NodeLabels(number[y], y != UNLABELLED, used, place)  # -1 selects the last entry


@dataclass(frozen=True)
class Unseen:
    """How good predictions are on nodes that training did not know the labels of.

    Attributes:
        quality: On those of them that have a label.
        trained_on: Number of labelled nodes that are not counted, because they were for training or validation.
        unknown: Number of nodes that are not counted, because the model does not know their class.
    """

    quality: Quality
    trained_on: int
    unknown: int


def quality_on_unseen(classifier: NodeClassifier, data: Data) -> Unseen:
    """Judge a classifier by the labels of a checked graph: the training graph, or one that has grown since.

    Raises:
        InputError: If there is no label but those that were trained on.
    """
    if data.y is None:
        raise InputError("the graph has no labels to evaluate by: name the column that holds the classes")
    labels = node_labels(classifier, data)
    counted = labels.unseen
    if not counted.any():
        raise InputError("there is nothing to evaluate: every node that has a label was used in training; label others")
    names = [str(c) for c in classifier.classes_]
    quality = quality_of(classifier.predict_proba_graph(data)[counted], labels.truth[counted], names)
    unknown = labels.labelled & ~labels.used & ~counted
    return Unseen(quality, int((labels.labelled & labels.used).sum()), int(unknown.sum()))
