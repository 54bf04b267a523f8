"""Why a node is classified as it is: probabilities, neighbours in the given and in the learned graph, and branches."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from statistics import fmean
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray

from gcnsl.checks import UNLABELLED
from gcnsl.errors import ArgumentError
from gcnsl.estimator.node_classifier import NodeClassifier


@dataclass(frozen=True)
class Node:
    """A node, named as the caller does or by its number, as the classifier sees it.

    ``label`` is its class if training knew it, and ``used_for`` says what for: ``"training"`` or ``"validation"``.
    """

    id: Any
    label: Any
    used_for: str | None
    predicted: Any
    probability: float

    @property
    def best_known(self) -> Any:
        """Its class if that is known, else the predicted one."""
        return self.predicted if self.label is None else self.label


@dataclass(frozen=True)
class Neighbour(Node):
    """A node that the given graph (``original``) or the learned one (``reconnected``) joins to another.

    ``similarity`` is the cosine of the two in the learned graph; ``None`` if it measures none.
    """

    similarity: float | None
    original: bool
    reconnected: bool


@dataclass(frozen=True)
class Explanation:
    """A prediction and what stands behind it.

    Attributes:
        probabilities: By class, the largest first.
        original: The node's neighbours in the given graph, the most similar first.
        reconnected: Those in the learned graph, the most similar first; ``None`` if none is learned.
        rival: The second most probable class.
        evidence: By branch, what it adds to the logit of the predicted class beyond that of the rival; the sum is the
            difference of the two logits. Empty if the model has no branches.
    """

    method: str
    node: Node
    probabilities: dict[Any, float]
    original: list[Neighbour]
    reconnected: list[Neighbour] | None
    rival: Any
    evidence: dict[str, float]

    def agreement(self, neighbours: list[Neighbour]) -> float | None:
        """The share of neighbours whose class, known or predicted, is the one predicted for the node."""
        return fmean(other.best_known == self.node.predicted for other in neighbours) if neighbours else None

    def summary(self, neighbours: list[Neighbour]) -> str:
        """Their number and agreement, in words."""
        share = self.agreement(neighbours)
        if share is None:
            return "no neighbours"
        return f"{len(neighbours):,} neighbour{'s' if len(neighbours) > 1 else ''}, {share:.1%} {self.node.predicted}"


def find_node(classifier: NodeClassifier, name: str) -> int:
    """The number of the training node with this id or, if nodes have no ids, with this number."""
    n, ids = len(classifier.y_), classifier.node_ids_
    if ids is None:
        if not name.isdecimal() or int(name) >= n:
            raise ArgumentError("node", name, f"must be a number from 0 to {n - 1}: the model's nodes have no ids")
        return int(name)
    strings = [str(one) for one in ids]
    if name not in strings:
        near = difflib.get_close_matches(name, strings, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"ids look like {strings[0]!r}"
        raise ArgumentError("node", name, f"is the id of no node that the model was trained with: {hint}")
    return strings.index(name)


def explain(classifier: NodeClassifier, node: int) -> Explanation:
    """Explain the prediction for a node of the training graph, by its number."""
    probabilities = classifier.predict_proba()
    order = np.argsort(-probabilities[node], kind="stable")
    source, target = classifier.graph_.edge_index
    original = target[source == node].numpy()
    reconnected, similarity = _learned_neighbours(classifier, node)
    joined = np.unique(np.concatenate([original, [] if reconnected is None else reconnected])).astype(np.int64)
    views = [
        Neighbour(
            **vars(_view(classifier, probabilities, i)),
            similarity=None if similarity is None else float(similarity[i]),
            original=bool((original == i).any()),
            reconnected=reconnected is not None and bool((reconnected == i).any()),
        )
        for i in joined.tolist()
        if i != node
    ]
    closest = sorted(views, key=lambda other: -(other.similarity or 0.0))
    classes, branches = classifier.classes_.tolist(), getattr(classifier.model_, "evidence", None)
    prepared, (first, second) = classifier.fitted_.prepared, order[:2].tolist()
    return Explanation(
        method=prepared.method.name,
        node=_view(classifier, probabilities, node),
        probabilities={classes[c]: float(probabilities[node, c]) for c in order},
        original=[other for other in closest if other.original],
        reconnected=None if reconnected is None else [other for other in closest if other.reconnected],
        rival=classes[second],
        evidence=branches(*prepared.inputs, node=node, one=first, other=second) if branches else {},
    )


def _view(classifier: NodeClassifier, probabilities: NDArray[Any], node: int) -> Node:
    number, classes = int(classifier.y_[node]), classifier.classes_.tolist()
    best = int(probabilities[node].argmax())
    uses = {"training": classifier.train_mask_, "validation": classifier.val_mask_}
    return Node(
        id=node if classifier.node_ids_ is None else classifier.node_ids_[node : node + 1].tolist()[0],
        label=None if number == UNLABELLED else classes[number],
        used_for=next((use for use, mask in uses.items() if mask[node]), None),
        predicted=classes[best],
        probability=float(probabilities[node, best]),
    )


@torch.no_grad()
def _learned_neighbours(
    classifier: NodeClassifier, node: int
) -> tuple[NDArray[np.int64] | None, NDArray[np.float32] | None]:
    """The nodes that the learned graph joins a node to, and its similarity to every node, if it learns and measures."""
    inputs, model = classifier.fitted_.prepared.inputs, cast("Any", classifier.model_)
    if not getattr(model, "learns_graph", False):
        return None, None
    (_, joined), _ = model.learned_graph(*inputs, rows=slice(node, node + 1))
    if not hasattr(model, "directions"):
        return joined.cpu().numpy(), None
    z = model.directions(inputs[0])
    return joined.cpu().numpy(), (z @ z[node]).cpu().numpy()
