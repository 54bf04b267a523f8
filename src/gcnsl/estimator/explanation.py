"""Why a node is classified as it is: probabilities, branches, features, and neighbours in both graphs."""

from __future__ import annotations

import copy
import difflib
from collections import defaultdict
from dataclasses import dataclass
from statistics import fmean
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from torch_geometric.data import Data

from gcnsl.auto import Blend
from gcnsl.auto.ensemble import Member
from gcnsl.checks import UNLABELLED
from gcnsl.errors import ArgumentError
from gcnsl.estimator.node_classifier import NodeClassifier
from gcnsl.estimator.reasons import Reason, attribute_features, feature_names, node_name, own_features, reason
from gcnsl.methods import Fitted
from gcnsl.nn.gated_branches import ComparedRows
from gcnsl.plain.class_votes import ClassVotes
from gcnsl.sparse import slice_rows
from gcnsl.training.metrics import most_probable

CROWD, CROWDED_SHARE = 1000, 0.5
"""From so many neighbours on, or with more than this share of all nodes, the learned graph tells nothing of a node."""

REASONED = 50
"""Number of neighbours for which reasons are looked for, unless another is asked for."""

ROUNDING = 1e-5
"""By how much a similarity of exactly ε may differ from it, computed in another order."""

ARROWS = {"edge": "", "out": "→", "in": "←"}


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

    ``similarity`` is the largest cosine of the two in a learned graph; ``None`` if none measures any. ``reasons`` say
    why learned graphs join the nodes; only those of the closest neighbours are looked for. ``links`` are those of
    the given graph: ``"out"`` to the neighbour and ``"in"`` from it, or ``"edge"`` if the graph has no directions, each
    with its weight; ``None`` if the graph has no weights.
    """

    similarity: float | None
    original: bool
    reconnected: bool
    links: dict[str, float | None]
    reasons: list[Reason]

    @property
    def arrows(self) -> str:
        """The links in short, such as ``"→ 2.5 ← 1"``; empty for an edge without direction and weight."""
        parts = (f"{ARROWS[way]} {'' if weight is None else f'{weight:g}'}" for way, weight in self.links.items())
        return " ".join(part.strip() for part in parts).replace("→ ←", "↔")


@dataclass(frozen=True)
class Feature:
    """A feature with its value at a node, and its share in the log-odds of the class against the rival.

    :mod:`gcnsl.estimator.reasons` says how the share is computed.
    """

    name: str
    value: float
    log_odds: float


@dataclass(frozen=True)
class Tally:
    """A number of neighbours, and the share of them that have the class predicted for the node; ``None`` of none."""

    count: int
    agreement: float | None


@dataclass(frozen=True)
class Explanation:
    """A prediction and what stands behind it.

    Attributes:
        probabilities: By class, the largest first.
        original: The node's neighbours in the given graph, the most similar first.
        reconnected: Those in the learned graph, the most similar first; ``None`` if none is learned.
        rival: The second most probable class.
        evidence: By branch, what it adds to the log-odds of the predicted class against the rival, the difference of
            their logits, which is the sum. Empty if the model has no branches.
        features: The features that have a share, those with the largest first; ``None`` if they were left out,
            or if the model is a step function of them, as trees are, so that shares are not defined.
        nodes: Number of nodes of the graph.
    """

    method: str
    node: Node
    probabilities: dict[Any, float]
    original: list[Neighbour]
    reconnected: list[Neighbour] | None
    rival: Any
    evidence: dict[str, float]
    features: list[Feature] | None
    nodes: int

    def tally(self, neighbours: list[Neighbour]) -> dict[str, Tally]:
        """Neighbours whose class was ``"known"`` to training, and those whose class is ``"predicted"``."""
        parts: dict[str, list[Neighbour]] = {"known": [], "predicted": []}
        for other in neighbours:
            parts["predicted" if other.label is None else "known"].append(other)
        return {
            name: Tally(len(part), fmean(o.best_known == self.node.predicted for o in part) if part else None)
            for name, part in parts.items()
        }

    def summary(self, neighbours: list[Neighbour]) -> str:
        """Their number and agreement, in words."""
        if not neighbours:
            return "no neighbours"
        parts = (
            f"{tally.count:,} {name} ({tally.agreement:.0%} of class {self.node.predicted})"
            for name, tally in self.tally(neighbours).items()
            if tally.agreement is not None
        )
        return f"{len(neighbours):,} neighbour{'s' if len(neighbours) > 1 else ''}, {' and '.join(parts)}"

    @property
    def is_crowded(self) -> bool:
        """Whether the learned graph joins the node to so many others that single ones tell nothing about it."""
        count = len(self.reconnected or [])
        return count >= CROWD or count > CROWDED_SHARE * self.nodes


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


def explain(
    classifier: NodeClassifier,
    node: int,
    *,
    probabilities: NDArray[Any] | None = None,
    reasoned: int = REASONED,
    with_features: bool = True,
) -> Explanation:
    """Explain the prediction for a node of the training graph, by its number.

    The probabilities are those of the classifier. If it is an ensemble, the reasons are those of one of its members.
    The last three arguments save time where many nodes are explained.

    Args:
        classifier: A fitted one.
        node: The number of the node.
        probabilities: What ``classifier.predict_proba()`` returns (n × C), if it is at hand.
        reasoned: Number of neighbours, the closest first, for which reasons are looked for.
        with_features: Whether to compute the shares of features, which takes longer than all the rest.
    """
    with classifier.fitted_.prepared.threads():
        probabilities = classifier.predict_proba() if probabilities is None else probabilities
        return _explain(classifier, node, probabilities, reasoned, with_features=with_features)


def _explain(
    classifier: NodeClassifier, node: int, probabilities: NDArray[Any], reasoned: int, *, with_features: bool
) -> Explanation:
    classifier, method = explained_member(classifier)
    order = np.argsort(-probabilities[node], kind="stable")
    given, learned = _links(classifier.graph_, node), _Learned(classifier, node)
    joined = learned.neighbours or set()
    others = sorted((given.keys() | joined) - {node}, key=lambda i: (-(learned.similarity(i) or 0.0), i))
    closest = [
        Neighbour(
            **vars(_view(classifier, probabilities, i)),
            similarity=learned.similarity(i),
            original=i in given,
            reconnected=i in joined,
            links=given.get(i, {}),
            reasons=learned.reasons(i) if place < reasoned else [],
        )
        for place, i in enumerate(others)
    ]
    classes, branches = classifier.classes_.tolist(), getattr(classifier.model_, "evidence", None)
    prepared, (first, second) = classifier.fitted_.prepared, order[:2].tolist()
    return Explanation(
        method=method,
        node=_view(classifier, probabilities, node),
        probabilities={classes[c]: float(probabilities[node, c]) for c in order},
        original=[other for other in closest if other.original],
        reconnected=None if learned.neighbours is None else [other for other in closest if other.reconnected],
        rival=classes[second],
        evidence=branches(*prepared.inputs, node=node, one=first, other=second) if branches else {},
        features=_features(classifier, node, one=first, other=second) if with_features else None,
        nodes=len(probabilities),
    )


def explained_member(classifier: NodeClassifier) -> tuple[NodeClassifier, str]:
    """The classifier with the heaviest member that can be explained in place of the ensemble, and words for what it is.

    Models that read no features, or have no gradients, have no reasons. A classifier that is no ensemble is returned
    as it is, with the name of its method.
    """
    if not isinstance(classifier.fitted_, Blend):
        return classifier, classifier.fitted_.prepared.method.name
    members = classifier.fitted_.members
    member = next((each for each in members if _has_reasons(each)), members[0])
    alone = copy.copy(classifier)
    alone.fitted_ = member.fits[0]
    return alone, f"{member.name}, {member.weight:.0%} of the ensemble," if len(members) > 1 else member.name


def _has_reasons(member: Member) -> bool:
    model = member.fits[0].model
    return not isinstance(model, ClassVotes) and not getattr(model, "is_step_function", False)


def _features(classifier: NodeClassifier, node: int, *, one: int, other: int) -> list[Feature] | None:
    if getattr(classifier.model_, "is_step_function", False):
        return None
    fitted = cast("Fitted", classifier.fitted_)  # explain has put a member in place of an ensemble
    shares = attribute_features(fitted, node, one=one, other=other)
    given = slice_rows(classifier.graph_.x, node, node + 1).to_dense()[0]
    values = given if len(given) == len(shares) else own_features(fitted, node)  # the method's own
    if values is given and classifier.encoder_ is not None:
        values = classifier.encoder_.own_units(given.numpy())
    names = feature_names(classifier, len(shares))
    order = [column for column in np.argsort(-np.abs(shares), kind="stable").tolist() if shares[column] != 0]
    return [Feature(names[column], float(values[column]), float(shares[column])) for column in order]


def _view(classifier: NodeClassifier, probabilities: NDArray[Any], node: int) -> Node:
    number, classes = int(classifier.y_[node]), classifier.classes_.tolist()
    best = int(most_probable(probabilities[node]))
    uses = {"training": classifier.train_mask_, "validation": classifier.val_mask_}
    return Node(
        id=node_name(classifier, node),
        label=None if number == UNLABELLED else classes[number],
        used_for=next((use for use, mask in uses.items() if mask[node]), None),
        predicted=classes[best],
        probability=float(probabilities[node, best]),
    )


def _links(graph: Data, node: int) -> dict[int, dict[str, float | None]]:
    """The links of a node in the given graph, by neighbour; see :class:`Neighbour`."""
    directed = "arc_index" in graph
    source, target = graph.arc_index if directed else graph.edge_index
    weight = graph.get("arc_weight" if directed else "edge_weight")
    links: dict[int, dict[str, float | None]] = defaultdict(dict)
    ways = {"out": (source, target), "in": (target, source)} if directed else {"edge": (source, target)}
    for way, (here, there) in ways.items():
        own = here == node
        weights = [None] * int(own.sum()) if weight is None else weight[own].tolist()
        for other, value in zip(there[own].tolist(), weights, strict=True):
            links[other][way] = value
    return links


class _Learned:
    """The learned graph around a node.

    ``neighbours`` are the nodes that it joins to the node; ``None`` if the model learns no graph.
    """

    def __init__(self, classifier: NodeClassifier, node: int) -> None:
        inputs, model = classifier.fitted_.prepared.inputs, cast("Any", classifier.model_)
        self._classifier, self._node = classifier, node
        self.neighbours: set[int] | None = None
        self._measured: list[tuple[ComparedRows, NDArray[np.float32]]] = []
        if getattr(model, "learns_graph", False):
            (_, joined), _ = model.learned_graph(*inputs, rows=slice(node, node + 1))
            self.neighbours = set(joined.tolist())
            compared = model.comparisons(*inputs) if hasattr(model, "comparisons") else []
            self._measured = [(each, each.similarities(node).cpu().numpy()) for each in compared]

    def similarity(self, other: int) -> float | None:
        """The largest similarity of the node to another, if any is measured."""
        return max((float(similarities[other]) for _, similarities in self._measured), default=None)

    def reasons(self, other: int) -> list[Reason]:
        """Why learned graphs join the node to another."""
        return [
            reason(self._classifier, compared, self._node, other, float(similarities[other]))
            for compared, similarities in self._measured
            if similarities[other] >= compared.epsilon - ROUNDING
        ]
