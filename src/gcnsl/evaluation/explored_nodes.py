"""Explanations of many nodes, as small as a page needs them, to walk from neighbour to neighbour."""

import json
import time
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import numpy as np

from gcnsl.estimator import NodeClassifier
from gcnsl.estimator.explanation import Explanation, Neighbour, Node, explain
from gcnsl.estimator.similarity_reasons import node_name
from gcnsl.training.metrics import Ints

DRAWN = 12
"""Number of neighbours that are shown of each graph, the most similar first."""
FEATURES, FEATURED = 8, 24
"""So many features are shown, and only of so many nodes, the first ones: finding them takes long."""
FORWARD_PASSES = 100
"""Finding the shares of a node's features takes about as long as predicting so many times."""
MOST_BYTES = 2_000_000
"""When explanations are as large as this, no more nodes are explained."""

_USES = (None, "training", "validation")


class ExploredNodes:
    """Explained nodes and all neighbours that are shown with them, as plain values for JSON.

    Args:
        classifier: A fitted one.
        truth: The class numbers of the training graph's nodes (n), -1 where they are not known even now.

    Attributes:
        nodes: A node each: ``[name, class known to training, true class, predicted class, probability, use]``. Classes
            are numbers, -1 if not known; the use is 1 for training, 2 for validation, else 0.
        views: What explains a node, by its place in ``nodes``.
    """

    def __init__(self, classifier: NodeClassifier, truth: Ints) -> None:
        self._classifier, self._truth = classifier, truth
        began = time.monotonic()
        self._probabilities = classifier.predict_proba()
        self._features_seconds = FORWARD_PASSES * (time.monotonic() - began)
        self._classes = {c: number for number, c in enumerate(classifier.classes_.tolist())}
        self._numbers = {node_name(classifier, number): number for number in range(len(truth))}
        self._places: dict[int, int] = {}
        self.nodes: list[list[Any]] = []
        self.views: dict[int, dict[str, Any]] = {}

    def explain(
        self, first: Sequence[int], *, seconds: float, on_progress: Callable[[int, int], None] | None = None
    ) -> None:
        """Explain some training nodes, then the neighbours that are shown with them, then others in random order.

        It ends when the time is over or the page is large enough, but not before one node is explained. After each,
        ``on_progress`` is called with the number of explained nodes and that of all nodes.
        """
        began, size, waiting, others = time.monotonic(), 0, list(first), np.random.default_rng(0)
        for number in chain(waiting, others.permutation(len(self._truth)).tolist()):
            spent = time.monotonic() - began
            if self.views and (spent > seconds or size > MOST_BYTES):
                break
            if self.place(number) is not None:
                continue
            told = explain(
                self._classifier,
                number,
                probabilities=self._probabilities,
                reasoned=2 * DRAWN,
                with_features=len(self.views) < FEATURED and spent + self._features_seconds < seconds / 3,
            )
            view = self._view(told)
            self.views[self._place(told.node)] = view
            size += len(json.dumps(view))
            if len(self.views) <= len(first):  # the loop goes on with what is added here
                shown = (*told.original[:DRAWN], *(told.reconnected or [])[:DRAWN])
                waiting += [self._numbers[other.id] for other in shown]
            if on_progress is not None:
                on_progress(len(self.views), len(self._truth))

    def place(self, number: int) -> int | None:
        """Where a node of the training graph is in ``nodes``, if it is explained."""
        place = self._places.get(number)
        return place if place in self.views else None

    def _place(self, node: Node) -> int:
        number = self._numbers[node.id]
        if number not in self._places:
            self._places[number] = len(self.nodes)
            classes = (self._classes.get(node.label, -1), int(self._truth[number]), self._classes[node.predicted])
            self.nodes.append([str(node.id), *classes, round(node.probability, 3), _USES.index(node.used_for)])
        return self._places[number]

    def _view(self, told: Explanation) -> dict[str, Any]:
        """The likeliest classes, what speaks for the first of them, and the neighbours in both graphs."""
        shares = told.features or []
        return {
            "likely": [[self._classes[c], round(p, 3)] for c, p in list(told.probabilities.items())[:3]],
            "evidence": [[name, round(value, 2)] for name, value in told.evidence.items()],
            "features": [[f.name, float(f"{f.value:.4g}"), round(f.log_odds, 2)] for f in shares[:FEATURES]],
            "given": self._side(told, told.original),
            "learned": None if told.reconnected is None else self._side(told, told.reconnected),
            "crowded": told.is_crowded,
        }

    def _side(self, told: Explanation, neighbours: list[Neighbour]) -> dict[str, Any]:
        """Neighbours: their number, a summary, and ``[place, similarity, arrows, in both graphs, reasons]`` of some."""
        is_learned = neighbours is told.reconnected
        return {
            "count": len(neighbours),
            "summary": told.summary(neighbours),
            "nodes": [
                [
                    self._place(other),
                    None if other.similarity is None else round(other.similarity, 2),
                    "" if is_learned else other.arrows,
                    other.original and other.reconnected,
                    "; ".join(map(str, other.reasons)) if is_learned else "",
                ]
                for other in neighbours[: 0 if is_learned and told.is_crowded else DRAWN]
            ],
        }
