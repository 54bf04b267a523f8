"""Why a node is classified as it is: whom A* connected it to, who its neighbours are, which branch decided."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from gcnsl.errors import InputError
from gcnsl.estimator.classifier import GCNSLClassifier
from gcnsl.graph import UNLABELLED
from gcnsl.reconnection import reconnected_edges


@dataclass(frozen=True)
class Node:
    """A node as the classifier sees it.

    Attributes:
        id: The caller's name for it, or its number.
        label: Its class, where training knew it.
        used_for: ``"training"``, ``"validation"`` or ``None``: what its label was used for.
        predicted: The class that the classifier gives it.
        probability: Of that class.
    """

    id: Any
    label: Any
    used_for: str | None
    predicted: Any
    probability: float

    @property
    def best_known(self) -> Any:
        """Its class where it is known, else the predicted one."""
        return self.predicted if self.label is None else self.label


@dataclass(frozen=True)
class Neighbour(Node):
    """A node that another is connected to.

    Attributes:
        similarity: Of the two in A*, the cosine; ``None`` for a model without A*.
        original: Whether the given graph connects them.
        reconnected: Whether A* connects them.
    """

    similarity: float | None
    original: bool
    reconnected: bool


@dataclass(frozen=True)
class Explanation:
    """A prediction and what stands behind it.

    Attributes:
        node: The node.
        probabilities: By class, the largest first.
        original: Its neighbours in the given graph, the most similar first.
        reconnected: Its neighbours in A*, the most similar first; ``None`` for a model that learns no A*.
        rival: The second most probable class.
        evidence: By branch, what it adds to the logit of the predicted class beyond that of the rival; the sum is the
            difference of the two logits.
    """

    node: Node
    probabilities: dict[Any, float]
    original: list[Neighbour]
    reconnected: list[Neighbour] | None
    rival: Any
    evidence: dict[str, float]

    def agreement(self, neighbours: list[Neighbour]) -> float | None:
        """Share of neighbours whose class, as far as it is known, is the one predicted for the node."""
        if not neighbours:
            return None
        return [other.best_known == self.node.predicted for other in neighbours].count(True) / len(neighbours)


def find_node(classifier: GCNSLClassifier, name: str) -> int:
    """The number of the training node with this id, or, where nodes have no ids, of this number."""
    n, ids = len(classifier.y_), classifier.node_ids_
    if ids is None:
        if not name.isdecimal() or int(name) >= n:
            raise InputError(f"node({name!r}) must be a number from 0 to {n - 1}: the model's nodes have no ids")
        return int(name)
    texts = [str(one) for one in ids]
    if name not in texts:
        near = difflib.get_close_matches(name, texts, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"ids look like {texts[0]!r}"
        raise InputError(f"node({name!r}) is the id of no node that the model was trained with: {hint}")
    return texts.index(name)


def explain(classifier: GCNSLClassifier, node: int) -> Explanation:
    """Explain the prediction for a node of the training graph, by its number."""
    probabilities = classifier.predict_proba()
    device = next(classifier.model_.parameters()).device
    inputs = [value.to(device) for value in classifier.graph_.inputs]
    source, target = classifier.graph_.edge_index
    original = target[source == node].numpy()
    similar = reconnected = None
    if classifier.model_.use_reconnected:
        similar, reconnected = _similarities(classifier, inputs[0], node)
    connected = [original, *([] if reconnected is None else [reconnected])]
    views = {
        int(i): Neighbour(
            **vars(_view(classifier, probabilities, int(i))),
            similarity=None if similar is None else float(similar[i]),
            original=bool((original == i).any()),
            reconnected=reconnected is not None and bool((reconnected == i).any()),
        )
        for i in np.unique(np.concatenate(connected))
        if i != node
    }
    closest = sorted(views.values(), key=lambda other: -(other.similarity or 0.0))
    order = np.argsort(-probabilities[node], kind="stable")
    classes = classifier.classes_.tolist()
    return Explanation(
        node=_view(classifier, probabilities, node),
        probabilities={classes[c]: float(probabilities[node, c]) for c in order},
        original=[other for other in closest if other.original],
        reconnected=None if reconnected is None else [other for other in closest if other.reconnected],
        rival=classes[order[1]],
        evidence=_evidence(classifier, inputs, node, int(order[0]), int(order[1])),
    )


def _view(classifier: GCNSLClassifier, probabilities: NDArray[Any], node: int) -> Node:
    number, classes = int(classifier.y_[node]), classifier.classes_.tolist()
    best = int(probabilities[node].argmax())
    uses = {"training": classifier.train_mask_, "validation": classifier.val_mask_}
    return Node(
        id=node if classifier.node_ids_ is None else classifier.node_ids_[node].item(),
        label=None if number == UNLABELLED else classes[number],
        used_for=next((use for use, mask in uses.items() if mask[node]), None),
        predicted=classes[best],
        probability=float(probabilities[node, best]),
    )


@torch.no_grad()
def _similarities(classifier: GCNSLClassifier, x: Any, node: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """The node's similarity to every node (n), and the nodes that A* connects it to."""
    z = classifier.model_.directions(x)
    (_, kept), _ = reconnected_edges(z[node : node + 1], classifier.model_.epsilon, keys=z)
    return (z @ z[node]).cpu().numpy(), kept.cpu().numpy()


@torch.no_grad()
def _evidence(
    classifier: GCNSLClassifier, inputs: list[Any], node: int, predicted: int, rival: int
) -> dict[str, float]:
    """The sum over each branch's entries of ReLU(w ⊙ H^cb) times the difference of two columns of W¹."""
    model = classifier.model_.eval()
    rows = [branch[node] for branch in model.branches(*inputs)]
    final: Tensor = functional.relu(model.gate * torch.cat(rows))
    parts = final * (model.lin_out.weight[predicted] - model.lin_out.weight[rival])
    names = ["own features"]
    if model.use_adjacency:
        names += [_over_a(model.rounds - 1), _over_a(model.rounds)]
    names += ["A*"] if model.use_reconnected else []
    evidence: dict[str, float] = {}
    for name, part in zip(names, parts.split(len(rows[0])), strict=True):
        evidence[name] = evidence.get(name, 0.0) + float(part.sum())
    return evidence


def _over_a(rounds: int) -> str:
    """What a branch is called; after no round it is H once more."""
    return "own features" if rounds == 0 else f"A ({rounds} step{'s' if rounds > 1 else ''})"
