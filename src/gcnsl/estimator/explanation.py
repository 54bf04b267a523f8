"""Why a node is classified as it is: what adds to the prediction, its edges, and neighbours in both graphs."""

from __future__ import annotations

import copy
import difflib
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data

from gcnsl.auto import AUTO, Blend
from gcnsl.auto.ensemble import BlendWarning
from gcnsl.checks import UNLABELLED
from gcnsl.errors import ArgumentError, InputError
from gcnsl.estimator.contributions import UserColumns, contributions
from gcnsl.estimator.node_classifier import NodeClassifier
from gcnsl.graph.checked_graph import node_titles
from gcnsl.graph.edges import ALONG
from gcnsl.nn.gated_branches import ComparedRows
from gcnsl.plain.neighbour_columns import Source
from gcnsl.sparse import stored_entries
from gcnsl.training.metrics import most_probable

CROWD, CROWDED_SHARE = 1000, 0.5
"""From so many neighbours on, or with more than this share of all nodes, the learned graph tells nothing of a node."""
REASONED = 50
"""Number of neighbours for which reasons are looked for, unless another is asked for."""
EDGES, EDGE_WORK = 20, 100_000_000
"""At most so many edges are removed, one at a time, and fewer if models would read more values in all."""
ROUNDING = 1e-5
"""By how much a similarity of exactly ε may differ from it, computed in another order."""
SHOWN = 5
"""Number of shared neighbours or features that a similarity is explained by."""
NAMED_NODES = 5
"""Of more nodes with contributions of their own, these are summed by class."""

Compared = list[tuple[ComparedRows, NDArray[np.float32]]]
"""Learned graphs, each with the cosines of a node and all others (n)."""
ARROWS = {"edge": "", "out": "→", "in": "←"}


@dataclass(frozen=True)
class Node:
    """A node as the classifier sees it, with its id, or its number if nodes have no ids.

    ``title`` has its name in the table, if it has one, and its id. ``label`` is its class if training knew it, and
    ``used_for`` says what for: ``"training"`` or ``"validation"``.
    """

    number: int
    id: Any
    title: str
    label: Any
    used_for: str | None
    predicted: Any
    probability: float


@dataclass(frozen=True)
class Reason:
    """A learned graph that joins two nodes, their cosine in it, and what this consists of.

    ``measure`` is what is compared, ``"links"`` or ``"features"``; ``parts`` are the largest parts of the similarity,
    by the id of a shared neighbour or the name of a feature, and ``others`` is the number of further ones.
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

    ``effect`` is what the edges to the neighbour add to the log-odds of the predicted class against the rival: these,
    minus what is predicted for the graph without these edges. If the node would be of another class without them, it is
    what it ``becomes``. Both are ``None`` for neighbours that were not tried.
    """

    similarity: float | None
    original: bool
    reconnected: bool
    links: dict[str, float | None]
    reasons: list[Reason]
    effect: float | None = None
    becomes: Any = None

    @property
    def arrows(self) -> str:
        """The links in short, such as ``"→ 2.5 ← 1"``; empty for an edge without direction and weight."""
        parts = (f"{ARROWS[way]} {'' if weight is None else f'{weight:g}'}" for way, weight in self.links.items())
        return " ".join(part.strip() for part in parts).replace("→ ←", "↔")


@dataclass(frozen=True)
class Contribution:
    """What something, such as ``"age of neighbours"``, adds to the log-odds of the predicted class against the rival.

    ``value`` is its value at the node, in the unit of the table, if it can be told, and ``column`` the user's column,
    if it is about one. ``log_odds`` is what it adds, compared with the training nodes.
    """

    name: str
    value: float | str | None
    log_odds: float
    column: str | None = None

    @property
    def value_text(self) -> str:
        """The value in a few characters; empty if there is none."""
        return f"{self.value:.6g}" if isinstance(self.value, float) else self.value or ""


@dataclass(frozen=True)
class Tally:
    """A number of neighbours, and the share of them that have the class predicted for the node; ``None`` of none."""

    count: int
    agreement: float | None


@dataclass(frozen=True)
class Alone:
    """A node without its edges: the class that is predicted then, its probability, and what the edges have added."""

    predicted: Any
    probability: float
    effect: float


@dataclass(frozen=True)
class Explanation:
    """A prediction and what stands behind it.

    Attributes:
        probabilities: By class, the largest first.
        original: The node's neighbours in the given graph, those whose edge matters most first, then the most similar.
        reconnected: Those in the learned graph, the most similar first; ``None`` if none is learned.
        rival: The class that is argued with: the true one if training knew it and the prediction is wrong, else the
            second most probable one.
        contributions: What adds to the log-odds of the predicted class against the rival, the largest first; for an
            ensemble the weighted sum of its members'. ``None`` if they were left out.
        evidence: What each branch adds to the difference of the two logits; empty for models without branches.
        alone: What would be predicted without any of the node's edges; ``None`` if the model can't tell.
        learned_by: The model whose learned graph is shown, with its weight in an ensemble; empty if none is.
        nodes: Number of nodes of the graph.
    """

    method: str
    node: Node
    probabilities: dict[Any, float]
    original: list[Neighbour]
    reconnected: list[Neighbour] | None
    rival: Any
    contributions: list[Contribution] | None
    evidence: dict[str, float]
    alone: Alone | None
    learned_by: str
    nodes: int

    def tally(self, neighbours: list[Neighbour]) -> dict[str, Tally]:
        """Neighbours whose class was ``"known"`` to training, and those whose class is ``"predicted"``."""
        known = [other.label == self.node.predicted for other in neighbours if other.label is not None]
        predicted = [other.predicted == self.node.predicted for other in neighbours if other.label is None]
        parts = {"known": known, "predicted": predicted}
        return {name: Tally(len(agree), fmean(agree) if agree else None) for name, agree in parts.items()}

    def summary(self, neighbours: list[Neighbour]) -> str:
        """Their number and agreement, in words."""
        if not neighbours:
            return "no neighbours"
        parts = " and ".join(
            f"{tally.count:,} {name} ({tally.agreement:.0%} of class {self.node.predicted})"
            for name, tally in self.tally(neighbours).items()
            if tally.agreement is not None
        )
        return f"{len(neighbours):,} neighbour{'s' if len(neighbours) > 1 else ''}, {parts}"

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
    named = [str(one) for one in classifier.graph_.get("node_names", ())]
    found = [number for known in (strings, named) for number, one in enumerate(known) if one == name]
    if not found:
        near = difflib.get_close_matches(name, strings, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"ids look like {strings[0]!r}"
        raise ArgumentError("node", name, f"is the id of no node that the model was trained with: {hint}")
    return found[0]


def node_name(classifier: NodeClassifier, node: int) -> Any:
    """The id of a node, or its number if nodes have no ids."""
    return node if classifier.node_ids_ is None else classifier.node_ids_[node : node + 1].tolist()[0]


def explain(
    classifier: NodeClassifier,
    node: int,
    *,
    against: Any = None,
    probabilities: NDArray[Any] | None = None,
    reasoned: int = REASONED,
    edges: int = EDGES,
    with_contributions: bool = True,
) -> Explanation:
    """Explain the prediction for a node of the training graph, by its number.

    Args:
        classifier: A fitted one.
        node: The number of the node.
        against: The class to argue with, see :class:`Explanation`: the true one of a mistake, for example.
        probabilities: What ``classifier.predict_proba()`` returns (n × C), if it is at hand.
        reasoned: For how many neighbours reasons of the learned graph are looked for, the closest first.
        edges: How many edges are removed, one at a time; those to neighbours of known class come first, then those to
            neighbours with few others.
        with_contributions: Whether to find contributions, which for networks takes longer than all the rest but edges.
    """
    with classifier.fitted_.prepared.threads():
        probabilities = classifier.predict_proba() if probabilities is None else probabilities
        classes, here = classifier.classes_.tolist(), _view(classifier, probabilities, node)
        order = np.argsort(-probabilities[node], kind="stable").tolist()
        rivals = [here.label if against is None else against, *(classes[number] for number in order[:2][::-1])]
        rival = next((c for c in rivals if c in classes and c != here.predicted), here.predicted)
        pair = classes.index(here.predicted), classes.index(rival)
        learner, learned_by = learning_member(classifier)
        given, (joined, compared) = _links(classifier.graph_, node), _learned(learner, node)
        tried = _edges_to_try(classifier, given.keys() - {node}, edges)
        effects, alone = _without_edges(classifier, node, tried, pair) if edges else ({}, None)

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
                reasons=_reasons(learner, compared, node, i) if place < reasoned else [],
                **effects.get(i, {}),
            )
            for place, i in enumerate(others)
        ]
        fitted, (one, other) = classifier.fitted_, pair
        branches = None if isinstance(fitted, Blend) else getattr(fitted.model, "evidence", None)
        found = contributions(fitted, node, one=one, other=other) if with_contributions and one != other else {}
        return Explanation(
            method=AUTO if isinstance(fitted, Blend) else fitted.prepared.method.name,
            node=here,
            probabilities={classes[c]: float(probabilities[node, c]) for c in order},
            original=sorted((o for o in closest if o.original), key=lambda o: -abs(o.effect or 0)),
            reconnected=None if joined is None else [other for other in closest if other.reconnected],
            rival=rival,
            contributions=_named(classifier, node, found) if with_contributions else None,
            evidence=branches(*fitted.prepared.inputs, node=node, one=one, other=other) if branches else {},
            alone=alone,
            learned_by=learned_by if joined is not None else "",
            nodes=len(probabilities),
        )


def learning_member(classifier: NodeClassifier) -> tuple[NodeClassifier, str]:
    """The classifier with the heaviest member of an ensemble that learns a graph, in its place, and what that is.

    A classifier that is no ensemble, or has no such member, is returned as it is.
    """
    if not isinstance(classifier.fitted_, Blend):
        return classifier, classifier.fitted_.prepared.method.title
    members = classifier.fitted_.members
    member = next((each for each in members if getattr(each.fits[0].model, "learns_graph", False)), members[0])
    alone = copy.copy(classifier)
    alone.fitted_ = member.fits[0]
    return alone, f"{member.name}{f', {member.weight:.0%} of the ensemble' if len(members) > 1 else ''}"


def _named(classifier: NodeClassifier, node: int, found: dict[Source, float]) -> list[Contribution]:
    """Contributions as people know them: by column of the table, the largest first."""
    columns, total = UserColumns(classifier, node), defaultdict[Source, float](float)
    nodes_of = Counter(source.text for source in found)
    for source, value in found.items():
        total[columns.summary_of(source, is_crowd=nodes_of[source.text] > NAMED_NODES)] += value
    told = (Contribution(*columns.told(each), value, columns.column(each)) for each, value in total.items())
    return sorted(told, key=lambda each: -abs(each.log_odds))


def _edges_to_try(classifier: NodeClassifier, neighbours: Iterable[int], most: int) -> list[int]:
    """Neighbours of known class come first, and then those with few neighbours, which count more in many models."""
    fitted, y = classifier.fitted_, classifier.y_
    degree = np.bincount(classifier.graph_.edge_index[0].numpy(), minlength=len(y))
    fits = [each for m in fitted.members for each in m.fits] if isinstance(fitted, Blend) else [fitted]
    work = sum(sum(map(stored_entries, each.prepared.inputs)) for each in fits)
    order = sorted(neighbours, key=lambda i: (y[i] == UNLABELLED, degree[i], i))
    return order[: max(1, min(most, EDGE_WORK // max(1, work)))]


def _without_edges(
    classifier: NodeClassifier, node: int, tried: list[int], pair: tuple[int, int]
) -> tuple[dict[int, dict[str, Any]], Alone | None]:
    """What the edges to each of some neighbours add, and all edges together; nothing if the model can't tell."""
    fitted, classes, (one, other) = classifier.fitted_, classifier.classes_.tolist(), pair

    def predicted(graph: Data | None) -> tuple[float, int, float]:
        logits = (fitted.logits() if graph is None else fitted.grown_logits(graph))[node].double()
        best = int(most_probable(logits.softmax(dim=0)[None].numpy())[0])
        return float(logits[one] - logits[other]), best, float(logits.softmax(dim=0)[best])

    before = predicted(None)[0]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", BlendWarning)  # it would be another ensemble
            log_odds, best, probability = predicted(without_edges(classifier.graph_, node))
            alone = Alone(classes[best], probability, before - log_odds) if tried else None
            effects = {}
            for neighbour in tried:
                log_odds, best, _ = predicted(without_edges(classifier.graph_, node, neighbour))
                effects[neighbour] = {"effect": before - log_odds, "becomes": None if best == one else classes[best]}
    except (InputError, BlendWarning):
        return {}, None
    reads_edges = alone is not None and (alone.effect or any(each["effect"] for each in effects.values()))
    return (effects, alone) if reads_edges else ({}, None)


def without_edges(graph: Data, node: int, neighbour: int | None = None) -> Data:
    """The graph without the edges between a node and a neighbour, or all others; loops stay."""
    graph = copy.copy(graph)
    for index, along in ALONG.items():
        if index not in graph:
            continue
        source, target = graph[index]
        others = torch.where(source == node, target, source)
        kept = ((source != node) & (target != node)) | (others == node)
        if neighbour is not None:
            kept |= others != neighbour
        graph[index] = graph[index][:, kept]
        graph.update({name: graph[name][kept] for name in along if name in graph})
    return graph


def _view(classifier: NodeClassifier, probabilities: NDArray[Any], node: int) -> Node:
    number, classes = int(classifier.y_[node]), classifier.classes_.tolist()
    best = int(classifier.decide(probabilities[node : node + 1])[0])
    uses = {"training": classifier.train_mask_, "validation": classifier.val_mask_}
    return Node(
        number=node,
        id=node_name(classifier, node),
        title=str(node_titles(classifier.graph_, np.array([node]))[0]),
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
        for entry in (here == node).nonzero()[:, 0].tolist():
            links[int(there[entry])][way] = None if weight is None else float(weight[entry])
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
        best, features = order[:SHOWN], UserColumns(classifier).features
        called = node_titles(classifier.graph_, np.array(best, dtype=int)).tolist() if by_links else None
        named = dict(zip(called or [features[k] for k in best], parts[best].tolist(), strict=True))
        reasons.append(Reason(each.name, float(cosines[other]), each.measure, named, max(0, len(order) - SHOWN)))
    return reasons
