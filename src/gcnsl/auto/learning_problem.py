"""What is to be learned: a graph, and folds of its labelled nodes that take turns in validation."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from gcnsl.auto.auto_settings import AutoSettings
from gcnsl.checks import UNLABELLED
from gcnsl.graph.edges import edge_parts
from gcnsl.identity import identity

NOT_LEARNED_FROM = -1


@dataclass(frozen=True)
class Problem:
    """A graph to learn from, the same for all candidates.

    Attributes:
        graph: A checked graph whose labels are those that may be learned from; others are -1.
        fold: The fold in which a node is for validation (n); :data:`NOT_LEARNED_FROM` for a node without a known
            label, and ``folds`` for one that is for training in all folds.
        folds: Number of folds (K).
        metric: What models are compared by.
        class_weight: What each class weighs in the loss.
        seed: Of preparation, weights and dropout.
        device: Where to train.
    """

    graph: Data
    fold: Tensor
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
    def identity(self) -> str:
        """Tells problems apart; the method and its options are those of a candidate, which has a key of its own."""
        parts = {"y": self.graph.y, "fold": self.fold}
        return identity(self.graph, parts, metric=self.metric, class_weight=self.class_weight, seed=self.seed)


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
    return Problem(known, fold, folds, settings.metric, settings.class_weight, seed, device)


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
