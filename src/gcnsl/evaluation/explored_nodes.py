"""Explanations of many nodes, as small as a page needs them: for an explorer that walks from neighbour to neighbour."""

import json
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gcnsl.estimator import NodeClassifier
from gcnsl.estimator.explanation import Explanation, Neighbour, Node, explain
from gcnsl.estimator.similarity_reasons import node_name
from gcnsl.training.metrics import Ints

DRAWN = 12
"""Number of neighbours that a page shows of each graph, the most similar first."""
FEATURES, FEATURED = 8, 24
"""Number of features that are shown, and of the nodes, the first ones, for which they are computed: it takes long."""
MOST_BYTES = 2_000_000
"""No more nodes are explained when the explanations are as large as this."""

_USES = (None, "training", "validation")


class ExploredNodes:
    """Explained nodes and all neighbours that they mention, as plain values for JSON.

    Args:
        classifier: A fitted one.
        truth: The class numbers of the training graph's nodes, as far as they are known now (n), else -1.

    Attributes:
        nodes: ``[name, class known to training, true class, predicted class, probability, use]`` of each node, where
            classes are numbers, -1 if not known, and the use is 0, 1 (training) or 2 (validation).
        views: By the place of a node in ``nodes``, what explains it.
    """

    def __init__(self, classifier: NodeClassifier, truth: Ints) -> None:
        self._classifier, self._truth = classifier, truth
        self._probabilities = classifier.predict_proba()
        self._class_numbers = {c: number for number, c in enumerate(classifier.classes_.tolist())}
        self._numbers = {node_name(classifier, node): node for node in range(len(truth))}
        self._places: dict[Any, int] = {}
        self.nodes: list[list[Any]] = []
        self.views: dict[int, dict[str, Any]] = {}

    def explain(
        self, order: Sequence[int], *, seconds: float, on_progress: Callable[[int, int], None] | None = None
    ) -> None:
        """Explain training nodes in this order, at least one, until the time is over or the page is large enough."""
        began, size = time.monotonic(), 0
        for done, node in enumerate(order):
            told = explain(
                self._classifier, node, probabilities=self._probabilities, with_features=done < FEATURED
            )
            place, view = self._place(told.node), self._view(told)
            self.views[place] = view
            size += len(json.dumps(view))
            if on_progress is not None:
                on_progress(done + 1, len(order))
            if size > MOST_BYTES or time.monotonic() - began > seconds:
                break

    def place(self, node: int) -> int | None:
        """Where a training node is in ``nodes``, if it is explained."""
        place = self._places.get(node_name(self._classifier, node))
        return place if place in self.views else None

    def _place(self, node: Node) -> int:
        if node.id not in self._places:
            self._places[node.id] = len(self.nodes)
            known, predicted = self._class_numbers.get(node.label, -1), self._class_numbers[node.predicted]
            truth = int(self._truth[self._numbers[node.id]])
            use = _USES.index(node.used_for)
            self.nodes.append([str(node.id), known, truth, predicted, round(node.probability, 3), use])
        return self._places[node.id]

    def _view(self, told: Explanation) -> dict[str, Any]:
        """``given`` and ``learned`` neighbours, the likeliest classes, and what speaks for the first of them."""
        likely = [[self._class_numbers[c], round(p, 3)] for c, p in list(told.probabilities.items())[:3]]
        return {
            "likely": likely,
            "evidence": [[name, round(value, 2)] for name, value in told.evidence.items()],
            "features": [[f.name, float(f"{f.value:.4g}"), round(f.log_odds, 2)] for f in told.features or ()][:FEATURES],
            "given": self._side(told, told.original),
            "learned": None if told.reconnected is None else self._side(told, told.reconnected),
            "crowded": told.is_crowded,
        }

    def _side(self, told: Explanation, neighbours: list[Neighbour]) -> dict[str, Any]:
        """A number of neighbours in words, and ``[place, similarity, arrows, in both graphs, reasons]`` of some."""
        shown = [] if neighbours is told.reconnected and told.is_crowded else neighbours[:DRAWN]
        return {
            "count": len(neighbours),
            "summary": told.summary(neighbours),
            "nodes": [
                [
                    self._place(other),
                    None if other.similarity is None else round(other.similarity, 2),
                    other.arrows,
                    other.original and other.reconnected,
                    "; ".join(str(reason) for reason in other.reasons) if neighbours is told.reconnected else "",
                ]
                for other in shown
            ],
        }


def explored_order(first: Ints, num_nodes: int) -> list[int]:
    """The nodes to explain: some first, then all others in random order, so that those explained are a fair sample."""
    order = np.concatenate([first, np.random.default_rng(0).permutation(num_nodes)])
    return list(dict.fromkeys(order.tolist()))
