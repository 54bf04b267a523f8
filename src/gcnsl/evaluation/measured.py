"""How good a model is, and on which nodes: measured once, for the terminal, JSON, pictures and the page.

Also what the given and the learned graph are like: edges, and how often they join nodes of the same class.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.metrics import confusion_matrix, precision_recall_fscore_support
from torch import Tensor
from torch_geometric.data import Data

from gcnsl.auto import Blend
from gcnsl.auto.ensemble import same_edges
from gcnsl.checks import UNLABELLED
from gcnsl.errors import InputError
from gcnsl.estimator import NodeClassifier
from gcnsl.estimator.grown_graph import in_training_order
from gcnsl.graph import edge_homophily, split_masks
from gcnsl.sparse import Matrix
from gcnsl.training.metrics import Floats, Ints, calibration_bins, measure, most_probable

SURE = 0.9
"""Predictions of this probability or more are called sure."""
FREQUENT = 2 / 3
"""A class with at least this share of the labelled nodes: always to predict it gets as many right."""
CROWDED = 0.1
"""A learned graph that joins a larger share of all pairs than this tells little."""
ROWS = 256
"""Rows of the learned graph that are listed at a time: before training it may join all pairs."""
ALL_ROWS, SAMPLES, SAMPLED_ROWS = 1 << 15, 16, 32
"""In a graph with more nodes than the first number, so many samples of so many rows are measured instead of all."""


class Share(NamedTuple):
    """A number of nodes, and the share of them that is classified correctly; ``None`` of none."""

    nodes: int
    right: float | None


class Confusion(NamedTuple):
    """A number of nodes of one class that are taken for another, both by name."""

    nodes: int
    of: str
    taken_for: str


@dataclass(frozen=True)
class ClassScores:
    """A class: its number of nodes, and how well it is found.

    All shares are ``None`` for a class without nodes, and so is the precision of one that is never predicted.
    """

    name: str
    nodes: int
    precision: float | None
    recall: float | None
    f1: float | None


@dataclass(frozen=True)
class Measured:
    """How good predictions are, and on which nodes that was measured.

    Attributes:
        probabilities: What is predicted for these nodes (m × C).
        truth: The numbers of their classes (m).
        class_names: Of all classes (C).
        kind: ``"test"``: their labels were used neither for training nor for choosing the model. If there are none,
            ``"validation"``: they were not learned from, but decided when to stop or which model to keep; or, where all
            labels were learned from, ``"out-of-fold"``: the predictions of each are those of the ensemble's models that
            had not learned from it.
        names: Their ids or numbers (m).
        places: Their numbers in the training graph (m); those of new nodes follow.
        baseline: The class that is most frequent in training, and the share of the nodes that are of it.
        trained_on, unknown: Numbers of labelled nodes that are not among them: those for training or validation, and
            those of a class that the model does not know.
        everywhere: What is predicted for all nodes of the training graph (n × C), if that was computed.
        seconds: How long that took.
        classes_everywhere: The class numbers of these as far as they are known now (n), else -1.
        learned: By ``"train"`` and ``"val"``, what the nodes that the model was trained with come to.
    """

    probabilities: Floats
    truth: Ints
    class_names: Sequence[str]
    kind: str = "test"
    names: NDArray[Any] = field(default_factory=lambda: np.empty(0))
    places: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    baseline: tuple[str, float] = ("", 0.0)
    trained_on: int = 0
    unknown: int = 0
    everywhere: Floats | None = None
    seconds: float = 0.0
    classes_everywhere: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    learned: dict[str, Share] = field(default_factory=dict)

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return len(self.truth)

    @property
    def in_words(self) -> str:
        """Their number and kind."""
        if self.kind != "out-of-fold":
            return f"{self.nodes:,} {self.kind} nodes"
        return f"{self.nodes:,} labelled nodes, each predicted by models that had not learned from it"

    @cached_property
    def predicted(self) -> Ints:
        """The numbers of the predicted classes (m)."""
        return most_probable(self.probabilities)

    @cached_property
    def metrics(self) -> dict[str, float]:
        """All metrics by name, see :data:`gcnsl.training.METRICS`."""
        return measure(self.probabilities, self.truth)

    @cached_property
    def confusion(self) -> list[list[int]]:
        """Numbers of nodes (C × C): a row for each true class, a column for each predicted one."""
        numbers = np.arange(len(self.class_names))
        counts: list[list[int]] = confusion_matrix(self.truth, self.predicted, labels=numbers).tolist()
        return counts

    @cached_property
    def classes(self) -> list[ClassScores]:
        """How well each class is found."""
        numbers = np.arange(len(self.class_names))
        parts = precision_recall_fscore_support(self.truth, self.predicted, labels=numbers, zero_division=np.nan)
        rows = zip(self.class_names, *(part.tolist() for part in parts), strict=True)
        return [
            ClassScores(name, nodes, *(None if not nodes or math.isnan(share) else share for share in shares))
            for name, *shares, nodes in rows
        ]

    @cached_property
    def calibration(self) -> dict[str, list[float]]:
        """Nodes in 15 equal bins of the predicted class's probability: ``nodes``, mean ``confidence``, ``accuracy``."""
        bins = calibration_bins(self.probabilities, self.truth)
        return {name: values.tolist() for name, values in bins._asdict().items()}

    @property
    def mistakes(self) -> Ints:
        """Which of the nodes are classified wrongly, the most confident mistakes first."""
        wrong: Ints = np.flatnonzero(self.predicted != self.truth)
        return wrong[np.argsort(-self.probabilities[wrong].max(axis=1), kind="stable")]

    @property
    def sure(self) -> Share | None:
        """The nodes that the classifier is sure of, if there are any."""
        sure = self.probabilities.max(axis=1) >= SURE
        return _share(self.predicted == self.truth, sure) if sure.any() else None

    @property
    def most_confused(self) -> Confusion | None:
        """The mistake that is made most often, if any is made."""
        counts = np.array(self.confusion)
        np.fill_diagonal(counts, 0)
        of, taken_for = divmod(int(counts.argmax()), len(counts))
        names = self.class_names
        return Confusion(int(counts.max()), names[of], names[taken_for]) if counts.any() else None

    def to_dict(self) -> dict[str, Any]:
        """The numbers as plain values, for JSON."""
        return {
            "nodes": self.nodes,
            "metrics": self.metrics,
            "classes": [asdict(each) for each in self.classes],
            "confusion": self.confusion,
            "calibration": self.calibration,
        }


def _share(right: NDArray[np.bool_], chosen: NDArray[np.bool_]) -> Share:
    return Share(int(chosen.sum()), float(right[chosen].mean()) if chosen.any() else None)


def measure_classifier(
    classifier: NodeClassifier, data: Data | None = None, *, nodes: Any = None, predicted: Floats | None = None
) -> Measured:
    """Measure a classifier on nodes whose labels were used neither for training nor for validation.

    If there are none, it is measured on what was held back from training; :class:`Measured` says on what.

    Args:
        classifier: A fitted one.
        data: A checked graph: the training graph with labels that training did not know, or one that has grown since;
            ``None`` for the training graph.
        nodes: Measure only on these of them (n, boolean), those of a test mask for example.
        predicted: What ``classifier.predict_proba_graph(data)`` returns, if it is at hand.

    Raises:
        InputError: If all labels were learned from, and it is not known what models without them predict.
    """
    data = classifier.graph_ if data is None else data
    ordered, place = in_training_order(classifier.graph_, data)
    order, known, class_names = np.argsort(place), len(classifier.y_), [str(c) for c in classifier.classes_]
    numbers, has_label = _labels(data, class_names)
    truth, labelled = numbers[order], has_label[order]
    masks, used = {"train": classifier.train_mask_, "val": classifier.val_mask_}, np.zeros(len(order), dtype=bool)
    used[:known] = masks["train"] | masks["val"]
    unseen = labelled & ~used & (truth != UNLABELLED)
    counted = unseen if nodes is None else unseen & np.asarray(nodes, dtype=bool)[order]
    left_out = labelled & ~unseen
    truth[:known] = np.where(classifier.y_ != UNLABELLED, classifier.y_, truth[:known])
    everywhere, began = None, time.monotonic()
    if same_edges(ordered, classifier.graph_):
        everywhere = classifier.predict_proba() if predicted is None else predicted[order]
    seconds = time.monotonic() - began
    if counted.any():
        kind, places = "test", place[counted[place]]
        if everywhere is not None:
            probabilities = everywhere[places]
        else:
            probabilities = (classifier.predict_proba_graph(data) if predicted is None else predicted)[order[places]]
    else:
        kind, places, probabilities = _held_back(classifier, everywhere)
    frequent = int(np.bincount(classifier.y_[masks["train"]]).argmax())
    right = None if everywhere is None else most_probable(everywhere) == classifier.y_
    return Measured(
        probabilities=probabilities,
        truth=truth[places],
        class_names=class_names,
        kind=kind,
        names=np.asarray(data.get("node_ids", np.arange(len(order))))[order[places]],
        places=places,
        baseline=(class_names[frequent], float((truth[places] == frequent).mean())),
        trained_on=int((left_out & used).sum()),
        unknown=int((left_out & ~used).sum()),
        everywhere=everywhere,
        seconds=seconds,
        classes_everywhere=truth[:known],
        learned={} if right is None else {name: _share(right, mask) for name, mask in masks.items()},
    )


def measure_split(classifier: NodeClassifier, data: Data, run: int) -> Measured:
    """Measure what ``classifier.fit_graph(data, run=run)`` has trained on the test nodes of that split, once.

    If it has learned from their labels, too, it is measured on what else was held back.
    """
    labelled = copy.copy(classifier.graph_)  # with its columns encoded as in training
    labelled.y = data.y
    return measure_classifier(classifier, labelled, nodes=split_masks(data, run, need=())["test"])


def _labels(data: Data, class_names: list[str]) -> tuple[Ints, NDArray[np.bool_]]:
    """The numbers of the classes (n), -1 without a label or with an unknown one; and whether there is a label."""
    if data.y is None:
        return np.full(data.num_nodes, UNLABELLED), np.zeros(data.num_nodes, dtype=bool)
    y, given = data.y.numpy(), [str(c) for c in data.get("class_names") or ()]
    number = np.array([class_names.index(name) if name in class_names else UNLABELLED for name in (*given, None)])
    return number[y], y != UNLABELLED  # -1 selects the last entry


def _held_back(classifier: NodeClassifier, everywhere: Floats | None) -> tuple[str, Ints, Floats]:
    """The training graph's nodes (v) to measure on without others: their kind, numbers and probabilities (v × C)."""
    judged = classifier.fitted_.out_of_fold if isinstance(classifier.fitted_, Blend) else None
    validation = np.flatnonzero(classifier.val_mask_)
    if judged is None and not len(validation):
        raise InputError("there is no node to measure on, since all labels were learned from: label other nodes")
    if judged is None:
        known = classifier.predict_proba() if everywhere is None else everywhere
        return "validation", validation, known[validation]
    return "validation" if len(validation) else "out-of-fold", judged.nodes.numpy(), judged.probabilities.numpy()


class Imbalance(NamedTuple):
    """What is uneven, in a few words, and the metric to look at instead of accuracy."""

    reason: str
    metric: str


def find_imbalance(y: Tensor, class_names: Sequence[Any]) -> Imbalance | None:
    """Look at the class numbers of all nodes (n), -1 for unknown; ``None`` if accuracy tells enough.

    With two classes the metric is the average precision of the rarer one, otherwise the balanced accuracy.
    """
    counts = torch.bincount(y[y != UNLABELLED], minlength=len(class_names))
    occurring = int((counts > 0).sum())
    if occurring < 2 or counts.max() < FREQUENT * counts.sum():
        return None
    share, name = counts.max() / counts.sum(), class_names[int(counts.argmax())]
    metric = "average-precision" if occurring == 2 else "balanced-accuracy"
    return Imbalance(f"{share:.0%} of the labelled nodes are {name!r}", metric)


class Agreement(NamedTuple):
    """Of a learned graph, loops not counted."""

    homophily: float | None
    """Share of the edges between labelled nodes whose ends are of one class; None if there are no such edges."""
    degree: float
    """Mean number of neighbours."""


def learned_agreement(
    model: Any, inputs: tuple[Matrix, ...], y: Tensor, *, among: Tensor | None = None
) -> Agreement | None:
    """Measure the graph that a model has learned, or return ``None`` if it learns none.

    Of a large graph (more than 32,768 nodes), the edges of 512 nodes are measured, since listing all takes too long.

    Args:
        model: If its attribute ``learns_graph`` is true, ``learned_graph(*inputs, rows=...)`` gives some rows' edges
            (2 × E) and weights (E).
        inputs: What the model reads, on its device.
        y: Classes (n), -1 for unknown.
        among: Measure the part of the graph that joins these nodes (n, boolean); ``None`` for all.
    """
    if not getattr(model, "learns_graph", False):
        return None
    n, labels = len(y), y.to(next(model.parameters()).device)
    chosen = torch.ones_like(labels, dtype=torch.bool) if among is None else among.to(labels.device)
    parts = [slice(first, first + ROWS) for first in range(0, n, ROWS)]
    if n > ALL_ROWS:
        firsts = range(0, n - SAMPLED_ROWS, n // SAMPLES)[:SAMPLES]
        parts = [slice(first, first + SAMPLED_ROWS) for first in firsts]
    edges = counted = agreeing = nodes = 0
    for rows in parts:
        (source, target), _ = model.learned_graph(*inputs, rows=rows)
        kept = (source != target) & chosen[source] & chosen[target]
        from_class, to_class = labels[source[kept]], labels[target[kept]]
        labelled = (from_class != UNLABELLED) & (to_class != UNLABELLED)
        edges += len(labelled)
        counted += int(labelled.sum())
        agreeing += int((labelled & (from_class == to_class)).sum())
        nodes += int(chosen[rows].sum())
    return Agreement(agreeing / counted if counted else None, edges / max(1, nodes))


@dataclass(frozen=True)
class GraphFacts:
    """Number of undirected edges, edge homophily as far as labels are known, and share of all pairs that are joined.

    ``chance`` is the homophily of random pairs: that two nodes are of one class.
    """

    edges: int
    homophily: float | None
    density: float
    chance: float

    @property
    def doubt(self) -> str:
        """Why this can't help as a learned graph, in words; empty if nothing speaks against it."""
        if not self.edges:
            return "it is empty: a smaller epsilon joins more nodes"
        if self.density > CROWDED:
            return f"{self.density:.0%} of all pairs, so it tells little: a larger epsilon joins fewer nodes"
        if self.homophily is not None and self.homophily <= self.chance:
            return f"no more than by chance, {self.chance:.2f}: the method may do as well without it"
        return ""


def graph_facts(classifier: NodeClassifier, data: Data) -> tuple[GraphFacts, GraphFacts | None]:
    """The graph that a classifier was trained on, with all its labels, and the one that it has learned, if it has."""
    n, edges, homophily = data.num_nodes, data.edge_report.edges, edge_homophily(data.edge_index, data.y)
    pairs = max(1, n * (n - 1) // 2)
    shares = torch.bincount(data.y[data.y != UNLABELLED]) / (data.y != UNLABELLED).sum()
    chance = float(shares.square().sum())
    given = GraphFacts(edges, None if math.isnan(homophily) else homophily, edges / pairs, chance)
    learned = learned_agreement(classifier.model_, classifier.fitted_.prepared.inputs, data.y)
    if learned is None:
        return given, None
    joined = round(learned.degree * n / 2)
    return given, GraphFacts(joined, learned.homophily, joined / pairs, chance)
