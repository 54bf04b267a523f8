r"""Why a node is classified as it is: probabilities, branches, features, and neighbours in both graphs.

The shares of features are integrated gradients. For the features x of one node, as the model reads them, and f, the
logit of one class minus that of another, feature j is given

.. math::
    a_j = (x_j - b_j) \int_0^1 \frac{\partial f}{\partial x_j}(b + \alpha (x - b)) \, d\alpha, \qquad
    \sum_j a_j = f(x) - f(b),

where everything else is held fixed: the other nodes' features, the graph, spectral features, and the learned graph A*
(but neither the order in which NLGNN lines up the nodes nor an A* over features in GCN-SL+; their jumps are given to no
feature). Since a logit is a logarithm of a probability up to a constant, f and all a_j are log-odds of the first class
against the second. The features b are those of a node that has none: zeros, as the model reads them. Where columns are
standardised, these are the means of the training nodes.

Sundararajan, Taly, Yan: Axiomatic Attribution for Deep Networks. ICML 2017.
"""

from __future__ import annotations

import copy
import difflib
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from gcnsl.auto import Blend
from gcnsl.checks import UNLABELLED
from gcnsl.errors import ArgumentError
from gcnsl.estimator.node_classifier import NodeClassifier
from gcnsl.methods import Fitted
from gcnsl.nn.gated_branches import ComparedRows
from gcnsl.plain.class_votes import ClassVotes
from gcnsl.sparse import SparseMatrix, slice_rows
from gcnsl.structure.structural_features import FEATURE_NAMES
from gcnsl.training.metrics import most_probable

CROWD, CROWDED_SHARE = 1000, 0.5
"""From so many neighbours on, or with more than this share of all nodes, the learned graph tells nothing of a node."""
REASONED = 50
"""Number of neighbours for which reasons are looked for, unless another is asked for."""
ROUNDING = 1e-5
"""By how much a similarity of exactly ε may differ from it, computed in another order."""
STEPS = 32
"""Midpoints of the integral. Each takes a forward and a backward pass over the whole graph."""
SHOWN = 5
"""Number of shared neighbours or features that a similarity is explained by."""

Compared = list[tuple[ComparedRows, NDArray[np.float32]]]
"""Learned graphs, each with the cosines of a node and all others (n)."""
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


@dataclass(frozen=True)
class Reason:
    """A learned graph that joins two nodes, their similarity in it, and what this consists of.

    Attributes:
        graph: Name of the learned graph.
        similarity: Cosine of the two nodes.
        measure: ``"links"`` or ``"features"``: what is compared.
        parts: The parts of the similarity that are largest, by the id of a shared neighbour or the name of a feature.
        others: Number of further shared neighbours or features that have a part.
    """

    graph: str
    similarity: float
    measure: str
    parts: dict[Any, float]
    others: int

    def __str__(self) -> str:
        if not self.parts:  # Q can make different neighbours count alike
            return "no shared neighbours, but neighbours that count alike in the model"
        more = f" and {self.others:,} more" if self.others else ""
        what = "shared neighbours" if self.measure == "links" else "features"
        return f"{what} {', '.join(map(str, self.parts))}{more}"


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
    """A feature with its value at a node, and its share in the log-odds of the class against the rival."""

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
        known = [other.label == self.node.predicted for other in neighbours if other.label is not None]
        predicted = [other.predicted == self.node.predicted for other in neighbours if other.label is None]
        parts = {"known": known, "predicted": predicted}
        return {name: Tally(len(agree), fmean(agree) if agree else None) for name, agree in parts.items()}

    def summary(self, neighbours: list[Neighbour]) -> str:
        """Their number and agreement, in words."""
        parts = (
            f"{tally.count:,} {name} ({tally.agreement:.0%} of class {self.node.predicted})"
            for name, tally in self.tally(neighbours).items()
            if tally.agreement is not None
        )
        count = f"{len(neighbours):,} neighbour{'s' if len(neighbours) > 1 else ''}"
        return f"{count}, {' and '.join(parts)}" if neighbours else "no neighbours"

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


def node_name(classifier: NodeClassifier, node: int) -> Any:
    """The id of a node, or its number if nodes have no ids."""
    return node if classifier.node_ids_ is None else classifier.node_ids_[node : node + 1].tolist()[0]


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
    Where many nodes are explained, time is saved by giving ``predict_proba()`` (n × C), by looking for reasons of fewer
    neighbours, the closest first, and by leaving out the shares of features, which take longer than all the rest.
    """
    with classifier.fitted_.prepared.threads():
        probabilities = classifier.predict_proba() if probabilities is None else probabilities
        classifier, method = explained_member(classifier)
        order, inputs = np.argsort(-probabilities[node], kind="stable"), classifier.fitted_.prepared.inputs
        first, second = order[:2].tolist()
        given, (joined, compared) = _links(classifier.graph_, node), _learned(classifier, node)

        def similarity(other: int) -> float | None:
            return max((float(cosines[other]) for _, cosines in compared), default=None)

        others = sorted((given.keys() | (joined or set())) - {node}, key=lambda i: (-(similarity(i) or 0.0), i))
        closest = [
            Neighbour(
                **vars(_view(classifier, probabilities, i)),
                similarity=similarity(i),
                original=i in given,
                reconnected=joined is not None and i in joined,
                links=given.get(i, {}),
                reasons=_reasons(classifier, compared, node, i) if place < reasoned else [],
            )
            for place, i in enumerate(others)
        ]
        classes, branches = classifier.classes_.tolist(), getattr(classifier.model_, "evidence", None)
        return Explanation(
            method=method,
            node=_view(classifier, probabilities, node),
            probabilities={classes[c]: float(probabilities[node, c]) for c in order},
            original=[other for other in closest if other.original],
            reconnected=None if joined is None else [other for other in closest if other.reconnected],
            rival=classes[second],
            evidence=branches(*inputs, node=node, one=first, other=second) if branches else {},
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
    member = next((each for each in members if _has_reasons(each.fits[0].model)), members[0])
    alone = copy.copy(classifier)
    alone.fitted_ = member.fits[0]
    return alone, f"{member.name}, {member.weight:.0%} of the ensemble," if len(members) > 1 else member.name


def _has_reasons(model: Any) -> bool:
    return not isinstance(model, ClassVotes) and not getattr(model, "is_step_function", False)


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


def _learned(classifier: NodeClassifier, node: int) -> tuple[set[int] | None, Compared]:
    """The nodes that the learned graph joins to a node, ``None`` without one; and what it measures, if anything."""
    inputs, model = classifier.fitted_.prepared.inputs, cast("Any", classifier.model_)
    if not getattr(model, "learns_graph", False):
        return None, []
    (_, joined), _ = model.learned_graph(*inputs, rows=slice(node, node + 1))
    compared = model.comparisons(*inputs) if hasattr(model, "comparisons") else []
    return set(joined.tolist()), [(each, each.similarities(node).cpu().numpy()) for each in compared]


def _reasons(classifier: NodeClassifier, compared: Compared, node: int, other: int) -> list[Reason]:
    """Why learned graphs join two nodes: what their similarity in each consists of."""
    reasons = []
    for each, cosines in compared:
        if cosines[other] < each.epsilon - ROUNDING:
            continue
        parts, by_links = each.parts(node, other).cpu(), each.measure == "links"
        if by_links:
            shared = (each.row(node) != 0) & (each.row(other) != 0)
            # with both directions, A has two columns for each node
            parts = torch.where(shared.cpu(), parts, 0.0).view(-1, len(classifier.y_)).sum(dim=0)
        order = parts.argsort(descending=True, stable=True)[: int((parts > 0).sum())].tolist()
        features = [] if by_links else _feature_names(classifier, len(parts))
        named = {node_name(classifier, k) if by_links else features[k]: float(parts[k]) for k in order[:SHOWN]}
        reasons.append(Reason(each.name, float(cosines[other]), each.measure, named, max(0, len(order) - SHOWN)))
    return reasons


def _feature_names(classifier: NodeClassifier, columns: int) -> list[str]:
    """The names of the features that the model reads."""
    further = FEATURE_NAMES if classifier.fitted_.prepared.features.structure is not None else ()
    own = columns - len(further)
    return [*(classifier.graph_.get("feature_names") or [f"feature {k}" for k in range(own)])[:own], *further]


def _features(classifier: NodeClassifier, node: int, *, one: int, other: int) -> list[Feature] | None:
    if getattr(classifier.model_, "is_step_function", False):
        return None
    fitted = cast("Fitted", classifier.fitted_)  # a member has taken the place of an ensemble
    shares = attribute_features(fitted, node, one=one, other=other)
    values = slice_rows(classifier.graph_.x, node, node + 1).to_dense()[0]
    if len(values) != len(shares):
        values = own_features(fitted, node)  # the method's own
    elif classifier.encoder_ is not None:
        values = classifier.encoder_.own_units(values.numpy())
    names = _feature_names(classifier, len(shares))
    order = [column for column in np.argsort(-np.abs(shares), kind="stable").tolist() if shares[column] != 0]
    return [Feature(names[column], float(values[column]), float(shares[column])) for column in order]


def own_features(fitted: Fitted, node: int) -> Tensor:
    """The features of a node as the model reads them (d)."""
    x = fitted.prepared.inputs[0]
    return x[node] if isinstance(x, Tensor) else x.row(node)


def attribute_features(fitted: Fitted, node: int, *, one: int, other: int, steps: int = STEPS) -> NDArray[np.float64]:
    """The share of each feature of a node (d) in the log-odds of class ``one`` against class ``other``."""
    log_odds, empty = log_odds_of(fitted, node, one=one, other=other)
    change = own_features(fitted, node) - empty
    gradients: list[Tensor] = []
    for alpha in (torch.arange(steps, dtype=torch.float64) + 0.5) / steps:
        row = (empty + float(alpha) * change).requires_grad_()
        with torch.enable_grad():
            value = log_odds(row)
            # a model may not read the features
            gradients += torch.autograd.grad(value, row) if value.requires_grad else (torch.zeros_like(row),)
    shares: NDArray[np.float64] = (torch.stack(gradients).mean(dim=0) * change).double().cpu().numpy()
    return shares


def log_odds_of(fitted: Fitted, node: int, *, one: int, other: int) -> tuple[Callable[[Tensor], Tensor], Tensor]:
    """f, as a function of a node's features (d), and b, those of a node without any (d)."""
    prepared, model, fixed = fitted.prepared, cast("Any", fitted.model), {}
    x, *inputs = prepared.inputs
    if getattr(model, "learns_graph", False) and hasattr(model, "directions"):
        fixed["directions"] = model.directions(x).detach()

    def log_odds(row: Tensor) -> Tensor:
        features = _with_row(x, node, row) if isinstance(x, Tensor) else SparseWithRow(x, node, row)
        logits: Tensor = model(features, *inputs, **fixed)[node]
        return logits[one] - logits[other]

    return log_odds, prepared.method.config.empty_row(x.shape[1], seed=prepared.seed).to(prepared.device)


class SparseWithRow(SparseMatrix):
    """A sparse X (n × d) with another row at one node, as far as models use X: for products, its shape and its type."""

    def __init__(self, x: SparseMatrix, node: int, row: Tensor) -> None:
        self.shape, self.values, self._x, self._node, self._row = x.shape, x.values, x, node, row

    def __matmul__(self, dense: Tensor) -> Tensor:
        return _with_row(self._x @ dense, self._node, self._row @ dense)

    def __len__(self) -> int:
        return self.shape[0]


def _with_row(dense: Tensor, node: int, row: Tensor) -> Tensor:
    return dense.index_copy(0, torch.tensor([node], device=dense.device), row[None])
