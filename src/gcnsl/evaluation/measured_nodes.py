"""The nodes that a classifier can be judged by, what it predicts for them, and what stands out."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch_geometric.data import Data

from gcnsl.auto import Blend
from gcnsl.checks import UNLABELLED
from gcnsl.errors import InputError
from gcnsl.estimator import NodeClassifier
from gcnsl.evaluation.quality import Quality, node_labels, quality_of
from gcnsl.training.metrics import Floats, Ints, most_probable

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
        kind: ``"test"``: their labels were used neither for training nor for choosing the model. If there are none,
            ``"validation"``: they were not learned from, but decided when to stop or which model to keep; or, where all
            labels were learned from, ``"out-of-fold"``: the predictions of each are those of the ensemble's models that
            had not learned from it.
        names: Their ids or numbers (m).
        places: Their numbers in the training graph (m); those of new nodes follow.
        truth: The numbers of their classes (m).
        probabilities: What is predicted for them (m × C).
        quality: How good that is.
        baseline: How many the class that is most frequent in training gets right, and its name.
        all_classes: The class numbers of all nodes of the training graph as far as they are known now (n), else -1.
    """

    kind: str
    names: NDArray[Any]
    places: Ints
    truth: Ints
    probabilities: Floats
    quality: Quality
    baseline: tuple[str, float]
    all_classes: Ints

    @property
    def in_words(self) -> str:
        """Their number and kind."""
        if self.kind != "out-of-fold":
            return f"{self.quality.nodes:,} {self.kind} nodes"
        return f"{self.quality.nodes:,} labelled nodes, each predicted by models that had not learned from it"

    @property
    def mistakes(self) -> Ints:
        """Which of the nodes are classified wrongly, the most confident mistakes first."""
        wrong = np.flatnonzero(most_probable(self.probabilities) != self.truth)
        order: Ints = wrong[np.argsort(-self.probabilities[wrong].max(axis=1), kind="stable")]
        return order

    @property
    def sure(self) -> Share | None:
        """The nodes that the classifier is sure of, if there are any."""
        sure = self.probabilities.max(axis=1) >= SURE
        right = most_probable(self.probabilities) == self.truth
        return Share(int(sure.sum()), float(right[sure].mean())) if sure.any() else None

    @property
    def most_confused(self) -> Confusion | None:
        """The mistake that is made most often, if any is made."""
        counts = np.array(self.quality.confusion)
        np.fill_diagonal(counts, 0)
        of, taken_for = np.unravel_index(counts.argmax(), counts.shape)
        names = [each.name for each in self.quality.classes]
        return Confusion(int(counts.max()), names[of], names[taken_for]) if counts.any() else None


def measured_nodes(classifier: NodeClassifier, data: Data, *, nodes: Any = None) -> MeasuredNodes:
    """Measure on the nodes of a checked graph whose labels were used neither for training nor for validation.

    Args:
        classifier: A fitted one.
        data: Its training graph, or one that has grown since.
        nodes: Measure only on these of them (n, boolean).

    Raises:
        InputError: If all labels were learned from, and it is not known what models without them predict.
    """
    labels, known = node_labels(classifier, data), len(classifier.y_)
    class_names = [str(c) for c in classifier.classes_]
    old, truth = labels.place < known, labels.truth.copy()
    trained = classifier.y_[labels.place[old]]
    truth[old] = np.where(trained != UNLABELLED, trained, truth[old])
    all_classes = np.empty(known, dtype=np.int64)
    all_classes[labels.place[old]] = truth[old]
    kind, counted = "test", labels.unseen if nodes is None else labels.unseen & np.asarray(nodes, dtype=bool)
    if counted.any():
        places, probabilities = labels.place[counted], classifier.predict_proba_graph(data)[counted]
    else:
        kind, places, probabilities = _held_back(classifier)
        if not len(places):
            raise InputError("there is no node to measure on, since all labels were learned from: label other nodes")
    ids, numbers = data.get("node_ids"), np.argsort(labels.place)[places]
    frequent = int(np.bincount(classifier.y_[classifier.train_mask_]).argmax())
    return MeasuredNodes(
        kind=kind,
        names=numbers if ids is None else ids[numbers],
        places=places,
        truth=truth[numbers],
        probabilities=probabilities,
        quality=quality_of(probabilities, truth[numbers], class_names),
        baseline=(class_names[frequent], float((truth[numbers] == frequent).mean())),
        all_classes=all_classes,
    )


def _held_back(classifier: NodeClassifier) -> tuple[str, Ints, Floats]:
    """The training graph's nodes (v) to measure on without others: their kind, numbers and probabilities (v × C)."""
    judged = classifier.fitted_.out_of_fold if isinstance(classifier.fitted_, Blend) else None
    if judged is None:
        return "validation", np.flatnonzero(classifier.val_mask_), classifier.predict_proba()[classifier.val_mask_]
    kind = "validation" if classifier.val_mask_.any() else "out-of-fold"
    return kind, judged.nodes.numpy(), judged.probabilities.numpy()
