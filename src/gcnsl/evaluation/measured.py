"""How good a model is, and on which nodes, and what its graphs are like: measured once, for all who show it."""

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
from sklearn.metrics import confusion_matrix
from torch import Tensor
from torch_geometric.data import Data

from gcnsl.auto.ensemble import same_edges
from gcnsl.checks import UNLABELLED
from gcnsl.estimator import NodeClassifier
from gcnsl.estimator.deciding import held_out, nodes_in_words, positive_of
from gcnsl.estimator.given_graph import in_training_order
from gcnsl.evaluation.intervals import CalibrationVerdict, Interval, judge_calibration, metric_intervals, wilson
from gcnsl.graph import edge_homophily, split_masks
from gcnsl.graph.checked_graph import node_titles
from gcnsl.sparse import Matrix
from gcnsl.training.decisions import Threshold, decide
from gcnsl.training.metrics import Floats, Ints, calibration_bins, measure

SURE = 0.9
"""Predictions of this probability or more are called sure."""
COVERAGES = (0.8, 0.9, 0.95)
"""Promises of prediction sets that are checked on test nodes."""
LIKELIEST = (10, 20, 50, 100, 200, 500, 1000)
"""So many of the likeliest nodes are looked at."""
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

    @property
    def interval(self) -> Interval | None:
        """The interval of the share."""
        return None if self.right is None else wilson(self.right * self.nodes, self.nodes)


class Coverage(NamedTuple):
    """Prediction sets: the promised and the measured share that hold the true class, their size, and single classes."""

    promised: float
    measured: float
    interval: Interval | None
    mean_size: float
    alone: float


class AtTop(NamedTuple):
    """The likeliest nodes of a class: their number, and those that are of it; precision and recall."""

    alerts: int
    found: int
    precision: float
    recall: float


class Confusion(NamedTuple):
    """A number of nodes of one class that are taken for another, both by name."""

    nodes: int
    of: str
    taken_for: str


@dataclass(frozen=True)
class ClassScores:
    """A class: its number of nodes, how well it is found, and for how many nodes it is predicted.

    Shares are ``None`` for a class without nodes, and so is the precision of one that is never predicted.
    """

    name: str
    nodes: int
    predicted: int
    precision: float | None
    recall: float | None
    f1: float | None
    precision_interval: Interval | None
    recall_interval: Interval | None

    @classmethod
    def of(cls, name: str, nodes: int, predicted: int, hits: int) -> ClassScores:
        """From counts."""
        if not nodes:
            return cls(name, 0, predicted, None, None, None, None, None)
        shares = hits / predicted if predicted else None, hits / nodes, 2 * hits / (nodes + predicted)
        return cls(name, nodes, predicted, *shares, wilson(hits, predicted), wilson(hits, nodes))


@dataclass(frozen=True)
class Measured:
    """How good predictions are, and on which nodes that was measured.

    Attributes:
        probabilities, truth: What is predicted for these nodes (m × C), and the numbers of their classes (m).
        class_names: Of all classes (C).
        kind: ``"test"``: their labels were used neither for training nor for choosing the model. If there are none,
            ``"validation"``: they were not learned from, but decided when to stop or which model to keep; or, where all
            labels were learned from, ``"out-of-fold"``: the predictions of each are those of the ensemble's models that
            had not learned from it.
        names, places: What they are called (m), and their numbers in the training graph, which new nodes follow (m).
        baseline: The class that is most frequent in training, and the share of the nodes that are of it.
        trained_on, unknown: Numbers of labelled nodes that are not among them: those for training or validation, and
            those of a class that the model does not know.
        everywhere: What is predicted for all nodes of the training graph (n × C), if that was computed, in ``seconds``.
        classes_everywhere: The class numbers of these as far as they are known now (n), else -1.
        learned: By ``"train"`` and ``"val"``, what the nodes that the model was trained with come to.
        threshold: That of the classifier, if it has one.
        positive: The number of the class that is looked for: that of the threshold, or the rarer of two.
        coverage: What prediction sets reach on test nodes; empty if there are none.
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
    threshold: Threshold | None = None
    positive: int | None = None
    coverage: tuple[Coverage, ...] = ()

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return len(self.truth)

    @property
    def in_words(self) -> str:
        """Their number and kind."""
        return nodes_in_words(self.nodes, self.kind)

    @cached_property
    def predicted(self) -> Ints:
        """The numbers of the predicted classes (m): the likeliest ones, but for the class of a threshold."""
        return decide(self.probabilities, self.threshold)

    @cached_property
    def confidence(self) -> Floats:
        """The probabilities of the predicted classes (m)."""
        return self.probabilities[np.arange(self.nodes), self.predicted]

    @cached_property
    def metrics(self) -> dict[str, float]:
        """All metrics by name, see :data:`gcnsl.training.METRICS`."""
        return measure(self.probabilities, self.truth, self.predicted)

    @cached_property
    def intervals(self) -> dict[str, Interval]:
        """Intervals of 95 % by metric, see :mod:`gcnsl.evaluation.intervals`."""
        return metric_intervals(self.metrics, self.probabilities, self.truth, self.predicted)

    @cached_property
    def believed(self) -> CalibrationVerdict | None:
        """Whether its probabilities can be believed; ``None`` of no nodes."""
        return judge_calibration(self.probabilities, self.truth)

    @property
    def never_predicted(self) -> list[ClassScores]:
        """Classes of which there are nodes, and that are predicted for none."""
        return [each for each in self.classes if each.nodes and not each.predicted]

    @property
    def likeliest(self) -> list[AtTop]:
        """How many of the likeliest nodes are of the class that is looked for: precision and recall at k."""
        if self.positive is None or not (self.truth == self.positive).any():
            return []
        order = np.argsort(-self.probabilities[:, self.positive], kind="stable")
        found = np.cumsum(self.truth[order] == self.positive)
        counted = [(k, int(found[k - 1])) for k in LIKELIEST if k <= self.nodes]
        return [AtTop(k, hits, hits / k, hits / int(found[-1])) for k, hits in counted]

    @cached_property
    def confusion(self) -> list[list[int]]:
        """Numbers of nodes (C × C): a row for each true class, a column for each predicted one."""
        numbers = np.arange(len(self.class_names))
        counts: list[list[int]] = confusion_matrix(self.truth, self.predicted, labels=numbers).tolist()
        return counts

    @cached_property
    def classes(self) -> list[ClassScores]:
        """How well each class is found."""
        counts = np.array(self.confusion)
        numbers = zip(counts.sum(axis=1).tolist(), counts.sum(axis=0).tolist(), counts.diagonal().tolist(), strict=True)
        return [ClassScores.of(name, *own) for name, own in zip(self.class_names, numbers, strict=True)]

    @cached_property
    def calibration(self) -> dict[str, list[float]]:
        """Nodes in 15 equal bins of the predicted class's probability: ``nodes``, mean ``confidence``, ``accuracy``."""
        bins = calibration_bins(self.probabilities, self.truth)
        return {name: values.tolist() for name, values in bins._asdict().items()}

    @property
    def mistakes(self) -> Ints:
        """Which of the nodes are classified wrongly, the most confident mistakes first."""
        wrong: Ints = np.flatnonzero(self.predicted != self.truth)
        return wrong[np.argsort(-self.confidence[wrong], kind="stable")]

    @property
    def sure(self) -> Share | None:
        """The nodes that the classifier is sure of, if there are any."""
        sure = self.confidence >= SURE
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
            "intervals": self.intervals,
            "classes": [asdict(each) for each in self.classes],
            "confusion": self.confusion,
            "calibration": self.calibration | ({} if self.believed is None else {"verdict": self.believed._asdict()}),
            "coverage": [each._asdict() for each in self.coverage],
            "threshold": self.threshold and self.threshold.to_dict(),
            "likeliest": [each._asdict() for each in self.likeliest],
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
        data: The training graph, by default as training knew it, or a graph that has grown since.
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
        places, probabilities, kind = held_out(classifier, everywhere)
    y, coverage = truth[places], list[Coverage]()
    for promised in COVERAGES if kind == "test" else ():
        sets = classifier.sets_of(probabilities, promised)
        hits, sizes = int(sets[np.arange(len(y)), y].sum()), sets.sum(axis=1)
        spread = (float(sizes.mean()), float((sizes == 1).mean()))
        coverage.append(Coverage(promised, hits / len(y), wilson(hits, len(y)), *spread))
    frequent = int(np.bincount(classifier.y_[masks["train"]]).argmax())
    right = None if everywhere is None else classifier.decide(everywhere) == classifier.y_
    return Measured(
        probabilities=probabilities,
        truth=y,
        class_names=class_names,
        kind=kind,
        names=node_titles(data, order[places]),
        places=places,
        baseline=(class_names[frequent], float((y == frequent).mean())),
        trained_on=int((left_out & used).sum()),
        unknown=int((left_out & ~used).sum()),
        everywhere=everywhere,
        seconds=seconds,
        classes_everywhere=truth[:known],
        learned={} if right is None else {name: _share(right, mask) for name, mask in masks.items()},
        threshold=classifier.threshold_,
        positive=positive_of(classifier),
        coverage=tuple(coverage),
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
    n, y = data.num_nodes, np.full(data.num_nodes, UNLABELLED) if data.y is None else data.y.numpy()
    numbers = dict(zip(class_names, range(len(class_names)), strict=True))
    given = [numbers.get(str(c), UNLABELLED) for c in data.get("class_names") or ()]
    return np.array([*given, UNLABELLED])[y].reshape(n), y != UNLABELLED  # -1 selects the last entry


class Agreement(NamedTuple):
    """Share of a learned graph's edges whose ends are of one class, as far as it is known, and the mean degree."""

    homophily: float | None
    degree: float


def learned_agreement(
    model: Any, inputs: tuple[Matrix, ...], y: Tensor, *, among: Tensor | None = None
) -> Agreement | None:
    """Measure the graph that a model has learned, or return ``None`` if it learns none.

    Of a large graph (more than 32,768 nodes), the edges of 512 nodes are measured, since listing all takes too long.
    Where ``model.learns_graph`` is true, ``model.learned_graph(*inputs, rows=...)`` gives some rows' edges (2 × E) and
    weights (E). ``y`` are classes (n), -1 for unknown; only the part ``among`` some nodes (n, boolean) is measured.
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
    """Undirected edges, their homophily as far as labels are known, the share of all pairs, homophily by chance."""

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
