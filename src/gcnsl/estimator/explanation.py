"""Why a node is classified as it is: probabilities, neighbours in the given and in the learned graph, and branches."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray

from gcnsl.checks import UNLABELLED
from gcnsl.errors import ArgumentError
from gcnsl.estimator.node_classifier import NodeClassifier


@dataclass(frozen=True)
class Node:
    """A node as the classifier sees it.

    Attributes:
        id: The caller's name for it, or its number.
        label: Its class, if training knew it.
        used_for: ``"training"``, ``"validation"`` or ``None``: what its label was used for.
        predicted: The class that the classifier predicts.
        probability: Of that class.
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
    """A node that another is joined to.

    Attributes:
        similarity: The cosine of the two in the learned graph; ``None`` if it measures none.
        original: Whether the given graph joins them.
        reconnected: Whether the learned graph joins them.
    """

    similarity: float | None
    original: bool
    reconnected: bool


@dataclass(frozen=True)
class Explanation:
    """A prediction and what stands behind it.

    Attributes:
        method: The classifier's method.
        node: The node.
        probabilities: By class, the largest first.
        original: Its neighbours in the given graph, the most similar first.
        reconnected: Its neighbours in the learned graph, the most similar first; ``None`` if none is learned.
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
        if not neighbours:
            return None
        return [other.best_known == self.node.predicted for other in neighbours].count(True) / len(neighbours)


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
    classes = classifier.classes_.tolist()
    return Explanation(
        method=classifier.fitted_.prepared.method.name,
        node=_view(classifier, probabilities, node),
        probabilities={classes[c]: float(probabilities[node, c]) for c in order},
        original=[other for other in closest if other.original],
        reconnected=None if reconnected is None else [other for other in closest if other.reconnected],
        rival=classes[order[1]],
        evidence=_evidence(classifier, node, int(order[0]), int(order[1])),
    )


def _view(classifier: NodeClassifier, probabilities: NDArray[Any], node: int) -> Node:
    number, classes = int(classifier.y_[node]), classifier.classes_.tolist()
    best = int(probabilities[node].argmax())
    uses = {"training": classifier.train_mask_, "validation": classifier.val_mask_}
    name = node if classifier.node_ids_ is None else classifier.node_ids_[node]
    return Node(
        id=name.item() if isinstance(name, np.generic) else name,
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
    directions = getattr(model, "directions", None)
    if directions is None:
        return joined.cpu().numpy(), None
    z = directions(inputs[0])
    return joined.cpu().numpy(), (z @ z[node]).cpu().numpy()


def _evidence(classifier: NodeClassifier, node: int, predicted: int, rival: int) -> dict[str, float]:
    """What the model itself says of its branches."""
    evidence = getattr(classifier.model_, "evidence", None)
    if evidence is None:
        return {}
    parts: dict[str, float] = evidence(*classifier.fitted_.prepared.inputs, node=node, one=predicted, other=rival)
    return parts
