"""What is learned and what is tried: a graph with folds of its labelled nodes, and the first candidates."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from gcnsl.auto.auto_settings import AutoSettings
from gcnsl.checks import UNLABELLED
from gcnsl.graph.edges import edge_parts
from gcnsl.methods import Method, find_method
from gcnsl.runs.jobs import Job, identity
from gcnsl.sparse import pairs_in_two_steps
from gcnsl.training.metrics import choose_metric

NOT_LEARNED_FROM = -1
MANY_PAIRS = 3e7
"""With more pairs of nodes two steps apart than this, methods that store them are left out."""
PER_ENTRY = {
    "label-propagation": 0.08,
    "logistic": 2.0,
    "boosted-trees": 3.0,
    "twins": 0.7,
    "mlp": 0.07,
    "gcn-sl-plus": 2.4,
    "linkx": 0.2,
    "sage": 0.17,
    "fsgnn": 1.7,
    "gcn": 0.15,
    "gat": 0.9,
    "h2gcn-2": 6.0,
    "gpr-gnn": 0.14,
    "acm-gcn": 0.4,
    "dir-gcn": 1.2,
}
"""Seconds of one core for each million of features and edges: preparation, one epoch or stage, and a prediction, on a
graph of 20,000 nodes with 64 features and 20 neighbours."""
FIXED = 0.1
"""Seconds that a fit takes on any graph."""
DEEP = 6.0
"""A deep network takes so many times as long."""
FEW_FEATURES = 200
"""With fewer dense features, deep residual networks also read structural ones."""
ENOUGH_NODES = 1500
"""Contenders are compared on no more folds than have so many nodes."""
_DEEP = {"num_layers": 5, "hidden_channels": 64, "norm": "batch", "dropout": 0.3, "drop_features": False}
_BLOCKS = {"blocks": 3, "hidden_channels": 128, "dropout": 0.3, "lr": 0.003, "weight_decay": 1e-5}


@dataclass(frozen=True)
class Candidate:
    """A method with some hyper-parameters, and a name to show.

    Two candidates are equal if they train the same model: whatever their names, and whether or not an option is given
    that has its default value.
    """

    name: str = field(compare=False)
    method: str
    options: dict[str, Any] = field(default_factory=dict, compare=False)
    key: str = field(init=False)

    def __post_init__(self) -> None:
        # With all options, as what is a default today may be another value in the next version.
        text = json.dumps([self.method, self.resolved.options()], sort_keys=True)
        object.__setattr__(self, "key", hashlib.sha256(text.encode()).hexdigest()[:16])

    @cached_property
    def resolved(self) -> Method:
        """The method with these hyper-parameters."""
        return find_method(self.method).with_options(**self.options)

    def usual_seconds(self, millions: float) -> float:
        """The time of its shortest fit with so many millions of features and edges, on the machine of the figures."""
        is_deep = self.options.get("num_layers", 0) >= 5 or self.options.get("blocks", 0) > 0
        return FIXED + PER_ENTRY[self.method] * (DEEP if is_deep else 1.0) * millions


def portfolio(graph: Data) -> list[Candidate]:
    """The candidates for a graph, those first that bring most for their time; the first is the cheapest."""
    directed = "arc_index" in graph
    along, undirected = {"direction": "out" if directed else "undirected"}, {"direction": "undirected"}
    few = graph.x.layout == torch.strided and graph.num_features < FEW_FEATURES
    blocks = _BLOCKS | {"structural_features": few}
    entries: list[tuple[str, str, dict[str, Any]]] = [
        ("label-propagation", "", {}),
        ("boosted-trees", "", {}),
        ("logistic", "", {}),
        ("linkx", "", along),
        ("gcn-sl-plus", "", {}),
        ("sage", "deep", _DEEP),
        ("boosted-trees", "without labels", {"labels": False}),
        ("gat", "residual", {**blocks, "hidden_channels": 16}),
        ("gcn", "residual", blocks),
        ("twins", "", along),
        *([("mlp", "", {})] if graph.num_features else []),
        ("fsgnn", "", along),
        ("gcn", "", {}),
        ("sage", "", {}),
        *((method, "undirected", undirected) for method in ("gcn-sl-plus", "linkx", "fsgnn") if directed),
        *([("sage", "out-edges", along)] if directed else []),
        *([("h2gcn-2", "", {})] if pairs_in_two_steps(graph.edge_index, graph.num_nodes) <= MANY_PAIRS else []),
        ("sage", "residual", blocks),
        ("gcn", "deep", {**_DEEP, "residual": True}),
        ("gpr-gnn", "", {}),
        ("acm-gcn", "", {}),
        *([("dir-gcn", "", {})] if directed else []),
    ]
    titles = (", ".join(filter(None, (find_method(method).title, variant))) for method, variant, _ in entries)
    return [Candidate(title, method, options) for title, (method, _, options) in zip(titles, entries, strict=True)]


@dataclass(frozen=True, kw_only=True)
class FoldJob(Job):
    """Train a candidate on a fold; the candidate's key is the job's name."""

    candidate: Candidate
    share: float = math.inf
    """Seconds after which it only goes on if a learning curve promises to reach the goal."""
    goals: tuple[float, float] = (-math.inf, -math.inf)
    """The metric and the log loss of the best contender, with the sign that makes more better."""

    def goes_on(self, curves: tuple[Sequence[float], Sequence[float]], seconds: float) -> bool:
        """Whether it has time, or promises much."""
        longer = max(1.0, self.seconds / max(seconds, 1e-3))
        return seconds < self.share or any(promises(*each, longer) for each in zip(curves, self.goals, strict=True))


def promises(curve: Sequence[float], goal: float, longer: float) -> bool:
    """Whether a learning curve still rises, and would reach a goal in so many times as many epochs.

    It is expected to rise with the logarithm of time, as it did in its last third.
    """
    best = np.maximum.accumulate(curve)
    rise = best[-1] - best[2 * len(best) // 3 - 1]
    return bool(rise > 0 and best[-1] + rise * math.log(longer) / math.log(1.5) >= goal)


@dataclass(frozen=True)
class Problem:
    """A graph to learn from, the same for all candidates."""

    graph: Data
    """A checked graph whose labels are those that may be learned from; others are -1."""
    fold: Tensor
    """The fold in which a node is for validation (n); :data:`NOT_LEARNED_FROM` for a node without a known label, and
    ``folds`` for one that is for training in all folds."""
    folds: int
    metric: str
    class_weight: str | None
    seed: int
    device: str

    def masks(self, fold: int) -> dict[str, Tensor]:
        """The nodes for training, and those for validation, in a fold (n each)."""
        return {"train": self.learned & (self.fold != fold), "val": self.fold == fold}

    @property
    def learned(self) -> Tensor:
        """The nodes whose labels may be learned from (n)."""
        return self.fold != NOT_LEARNED_FROM

    def validated(self, folds: int) -> Tensor:
        """The nodes that are for validation in one of the first folds (n)."""
        return self.learned & (self.fold < folds)

    @cached_property
    def compared(self) -> int:
        """The number of folds on which contenders are compared: one if it has many nodes, all if they have few."""
        sizes = torch.bincount(self.fold[self.learned], minlength=self.folds)[: self.folds].cumsum(dim=0)
        return min(self.folds, 1 + int((sizes < ENOUGH_NODES).sum()))

    @cached_property
    def identity(self) -> str:
        """Tells problems apart; the method and its options are those of a candidate, which has a key of its own."""
        parts = {"y": self.graph.y, "fold": self.fold}
        return identity(self.graph, parts, metric=self.metric, class_weight=self.class_weight, seed=self.seed)

    def method(self, candidate: Candidate) -> Method:
        """The candidate's method with the problem's class weights; epochs are chosen by its metric.

        Accuracy is an exception: where it is wanted, each method chooses epochs as its literature does.
        """
        monitor = {} if self.metric == "accuracy" else {"monitor": self.metric}
        return candidate.resolved.with_options(class_weight=self.class_weight, **monitor)

    def job(self, candidate: Candidate, fold: int, **times: Any) -> FoldJob:
        """The job of training a candidate on a fold, with the times of :class:`FoldJob`."""
        where: dict[str, Any] = {"name": candidate.key, "run": fold, "split": fold, "seed": self.seed + fold}
        return FoldJob(method=self.method(candidate), candidate=candidate, **where, **times)


def make_problem(
    graph: Data, train_mask: Tensor, val_mask: Tensor, settings: AutoSettings, *, seed: int, device: str
) -> Problem:
    """The problem of learning from the nodes of two masks (n each), all labelled.

    With ``keep_validation`` the validation nodes are those of the only fold. Otherwise there are as many folds as the
    quality wants, with at least two labelled nodes in each.
    """
    learned, folds = train_mask | val_mask, 1
    known = Data(x=graph.x, y=torch.where(learned, graph.y, UNLABELLED), **edge_parts(graph))  # all that methods read
    known.class_names, known.num_nodes = graph.class_names, graph.num_nodes
    known.feature_names = graph.get("feature_names")
    if settings.keep_validation:
        fold = torch.where(train_mask, 1, torch.where(val_mask, 0, NOT_LEARNED_FROM))
    else:
        folds = max(2, min(settings.effort.folds, int(learned.sum()) // 2))
        fold = deal_folds(known.y, folds, seed=seed)
    metric = settings.metric or choose_metric(known.y, graph.class_names).metric
    return Problem(known, fold, folds, metric, settings.class_weight, seed, device)


def deal_folds(y: Tensor, folds: int, *, seed: int) -> Tensor:
    """The fold of each labelled node, -1 for others (n). The nodes are dealt out like cards, one class after another.

    So the folds are of equal size, and so are the shares of each class, up to one node.
    """
    labels = y.numpy()
    shuffled = np.random.default_rng(seed).permutation(np.flatnonzero(labels != UNLABELLED))
    by_class = shuffled[np.argsort(labels[shuffled], kind="stable")]
    fold = torch.full_like(y, NOT_LEARNED_FROM)
    fold[torch.from_numpy(by_class)] = torch.arange(len(by_class)) % folds
    return fold
