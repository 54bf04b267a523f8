"""The nodes that a classifier can be judged by, what it predicts for them, and what stands out."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch_geometric.data import Data

from gcnsl.checks import UNLABELLED
from gcnsl.estimator import NodeClassifier
from gcnsl.evaluation.quality import Quality, node_labels, quality_of
from gcnsl.selection import AUTO
from gcnsl.training.metrics import Floats, Ints

SURE = 0.9
"""Predictions of this probability or more are called sure."""


class Share(NamedTuple):
    """A number of nodes, and the share of them that is classified correctly."""

    nodes: int
    right: float


class Confusion(NamedTuple):
    """A number of nodes of one class that are taken for another, both by name."""

    nodes: int
    of: str
    taken_for: str


@dataclass(frozen=True)
class MeasuredNodes:
    """Nodes that a classifier is measured on.

    Attributes:
        kind: ``"test"`` or, if no other node has a label, ``"validation"``.
        were_learned: Whether models of the ensemble have learned from these nodes, each from those of the other folds.
        names: Their ids or numbers (m).
        places: Their numbers in the training graph (m); those of new nodes follow.
        truth: The numbers of their classes (m).
        probabilities: What is predicted for them (m × C).
        quality: How good that is.
        baseline: How many the class that is most frequent in training gets right, and its name.
        all_classes: The class numbers of all nodes of the training graph as far as they are known now (n), else -1.
    """

    kind: str
    were_learned: bool
    names: NDArray[Any]
    places: Ints
    truth: Ints
    probabilities: Floats
    quality: Quality
    baseline: tuple[str, float]
    all_classes: Ints

    @property
    def mistakes(self) -> Ints:
        """Which of the nodes are classified wrongly, the most confident mistakes first."""
        wrong = np.flatnonzero(self.probabilities.argmax(axis=1) != self.truth)
        order: Ints = wrong[np.argsort(-self.probabilities[wrong].max(axis=1), kind="stable")]
        return order

    @property
    def sure(self) -> Share | None:
        """The nodes that the classifier is sure of, if there are any."""
        sure = self.probabilities.max(axis=1) >= SURE
        right = self.probabilities.argmax(axis=1) == self.truth
        return Share(int(sure.sum()), float(right[sure].mean())) if sure.any() else None

    @property
    def most_confused(self) -> Confusion | None:
        """The mistake that is made most often, if any is made."""
        counts = np.array(self.quality.confusion)
        np.fill_diagonal(counts, 0)
        of, taken_for = np.unravel_index(counts.argmax(), counts.shape)
        names = [each.name for each in self.quality.classes]
        return Confusion(int(counts.max()), names[of], names[taken_for]) if counts.any() else None


def learned_validation(classifier: NodeClassifier) -> bool:
    """Whether the validation nodes of a fitted classifier were for training, too, in other folds."""
    return classifier.method == AUTO and not classifier.options.get("keep_validation")


def measured_nodes(classifier: NodeClassifier, data: Data, *, nodes: Any = None) -> MeasuredNodes:
    """Measure on the nodes of a checked graph whose labels were used neither for training nor for validation.

    Args:
        classifier: A fitted one.
        data: Its training graph, or one that has grown since.
        nodes: Measure only on these of them (n, boolean).
    """
    labels, known = node_labels(classifier, data), len(classifier.y_)
    old, truth = labels.place < known, labels.truth.copy()
    trained = classifier.y_[labels.place[old]]
    truth[old] = np.where(trained != UNLABELLED, trained, truth[old])
    all_classes = np.empty(known, dtype=np.int64)
    all_classes[labels.place[old]] = truth[old]
    kind, counted = "test", labels.unseen if nodes is None else labels.unseen & np.asarray(nodes, dtype=bool)
    if not counted.any():
        kind, counted = "validation", np.append(classifier.val_mask_, np.zeros(len(truth), dtype=bool))[labels.place]
    probabilities, names = classifier.predict_proba_graph(data)[counted], [str(c) for c in classifier.classes_]
    ids, frequent = data.get("node_ids"), int(np.bincount(classifier.y_[classifier.train_mask_]).argmax())
    return MeasuredNodes(
        kind=kind,
        were_learned=kind == "validation" and learned_validation(classifier),
        names=np.flatnonzero(counted) if ids is None else ids[counted],
        places=labels.place[counted],
        truth=truth[counted],
        probabilities=probabilities,
        quality=quality_of(probabilities, truth[counted], names),
        baseline=(names[frequent], float((truth[counted] == frequent).mean())),
        all_classes=all_classes,
    )
