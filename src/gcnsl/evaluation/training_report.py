"""What came of training a classifier on one split of a graph."""

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch_geometric.data import Data

from gcnsl.auto import AUTO, Blend
from gcnsl.checks import UNLABELLED
from gcnsl.estimator import NodeClassifier
from gcnsl.evaluation.agreement import learned_agreement
from gcnsl.evaluation.quality import Quality, quality_of
from gcnsl.graph import edge_homophily, split_masks
from gcnsl.training.metrics import most_probable

CROWDED = 0.1
"""A learned graph that joins a larger share of all pairs than this tells little."""


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


@dataclass(frozen=True)
class TrainingReport:
    """What came of training.

    Attributes:
        nodes: How many nodes were for ``"train"``, ``"val"`` and ``"test"``. An ensemble of several folds has learned
            from all that decided anything; the leaderboard has what its models say of nodes they had not learned from.
        accuracy: The shares of them that are classified correctly; ``None`` where there are none.
        features: What was made of the graph's features, in words.
        test: All metrics on the test nodes, each class and the confusion matrix; ``None`` if there are no such nodes.
        epochs, best_epoch, stopped, seconds: See :class:`gcnsl.training.History`.
        original, reconnected: The given and the learned graph, whose loops are left out; ``None`` if none is learned.
        options: All hyper-parameters.
    """

    method: str
    graph: str
    run: int
    device: str
    nodes: dict[str, int]
    accuracy: dict[str, float | None]
    features: str
    test: Quality | None
    epochs: int
    best_epoch: int
    stopped: str
    seconds: float
    original: GraphFacts
    reconnected: GraphFacts | None
    options: dict[str, Any]


def report_on(classifier: NodeClassifier, data: Data, *, run: int = 0) -> TrainingReport:
    """Say what came of ``classifier.fit_graph(data, run=run)``: here the test nodes are looked at, once."""
    prepared, history, n = classifier.fitted_.prepared, classifier.history_, data.num_nodes
    pairs, is_blend = max(1, n * (n - 1) // 2), isinstance(classifier.fitted_, Blend)
    held_back = split_masks(data, run, need=())["test"].numpy() & (classifier.y_ == UNLABELLED)
    parts = {"train": classifier.train_mask_, "val": classifier.val_mask_, "test": held_back}
    probabilities, y = classifier.predict_proba(), data.y.numpy()
    correct = most_probable(probabilities) == y
    accuracy = {name: float(correct[mask].mean()) if mask.any() else None for name, mask in parts.items()}
    edges, homophily = data.edge_report.edges, edge_homophily(data.edge_index, data.y)
    learned = learned_agreement(classifier.model_, prepared.inputs, data.y)
    joined = 0 if learned is None else round(learned.degree * n / 2)
    shares = torch.bincount(data.y[data.y != UNLABELLED]) / (data.y != UNLABELLED).sum()
    chance = float(shares.square().sum())
    return TrainingReport(
        method=AUTO if is_blend else prepared.method.name,
        graph=data.get("name") or "graph",
        run=run,
        device=str(prepared.device),
        nodes={name: int(mask.sum()) for name, mask in parts.items()},
        accuracy=accuracy,
        features=prepared.features.in_words(prepared.graph),
        test=quality_of(probabilities[held_back], y[held_back], data.class_names) if held_back.any() else None,
        epochs=len(history),
        best_epoch=history.best_epoch,
        stopped=history.stopped,
        seconds=history.seconds,
        original=GraphFacts(edges, None if math.isnan(homophily) else homophily, edges / pairs, chance),
        reconnected=learned and GraphFacts(joined, learned.homophily, joined / pairs, chance),
        options=classifier.options if is_blend else prepared.method.options(),
    )
