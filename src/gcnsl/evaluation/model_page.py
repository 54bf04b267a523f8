"""Pages about one's own graph and a model of it: how good the model is, where it errs, and why."""

from __future__ import annotations

import copy
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import numpy as np
from torch_geometric.data import Data

from gcnsl.auto import AUTO, Blend
from gcnsl.auto.selection import shown_scores
from gcnsl.errors import InputError
from gcnsl.estimator import NodeClassifier
from gcnsl.estimator.explanation import Explanation, Neighbour, Node, explain
from gcnsl.estimator.importance import Importance, measure_importance
from gcnsl.evaluation.intervals import interval_text
from gcnsl.evaluation.measured import SURE, Measured, measure_classifier
from gcnsl.files import atomic_write
from gcnsl.graph import summarize
from gcnsl.graph.checked_graph import node_titles
from gcnsl.graph.column_report import summarize_columns
from gcnsl.graph.edges import report_edges
from gcnsl.graph.summary import class_compatibility
from gcnsl.pictures import find_template
from gcnsl.training import METRICS
from gcnsl.training.decisions import Curve
from gcnsl.training.metrics import Floats, Ints, choose_metric

MISTAKES, SHOWN_ROWS = 1000, 20
"""So many mistakes are listed, the most confident first; of longer tables, so many rows are shown at first."""
CURVES = 40
"""With more classes than this, thresholds are shown for the class that is looked for only, or for none."""
MATRIX_NUMBERS = 12
"""With more classes than this, the cells of a matrix are too small for numbers."""
DRAWN = 12
"""Number of neighbours that are shown of each graph, the most similar first."""
SHARES, FEATURED = 8, 24
"""So many contributions are shown, and only of so many nodes: of the first one, and others if time allows."""
FORWARD_PASSES = 100
"""Finding a node's contributions, and what its edges add, takes about as long as predicting so many times."""
MOST_BYTES = 2_000_000
"""When explanations are as large as this, no more nodes are explained."""

_COLOURS = (
    "#3b82c4", "#e0803a", "#3fa35b", "#c9504e", "#8f6cc4", "#8c6d52", "#d168a6", "#a9a52f", "#2fa8b5", "#7f8a94",
)  # fmt: skip
_USES = (None, "training", "validation")


def write_model_page(
    classifier: NodeClassifier,
    path: str | os.PathLike[str],
    data: Data | None = None,
    *,
    measured: Measured | None = None,
    name: str | None = None,
    seconds: float = 30.0,
    on_progress: Callable[[int, int], None] | None = None,
) -> Measured:
    """Write a page about a fitted classifier and its graph: one HTML file that needs no network.

    Args:
        classifier: A fitted one. If it has a ``leaderboard_``, the page shows it.
        path: The file to write.
        data: The training graph with labels that training did not know, or one that has grown since; what the page
            measures on is said by :func:`gcnsl.evaluation.measure_classifier`.
        measured: How good it is on that graph, if that has been measured.
        name: What to call the graph; by default what ``data`` calls it.
        seconds: Time for explaining nodes: the most confident mistakes, their neighbours, then a random sample.
        on_progress: Called with the number of nodes explained so far and the number of all after each of them.

    Returns:
        What the page shows: how good it is, and on which nodes.
    """
    graph, known = copy.copy(classifier.graph_ if data is None else data), len(classifier.y_)
    if "edge_report" not in graph:  # a model on disk does not keep it
        graph.edge_report = report_edges(graph)
    measured = measure_classifier(classifier, graph) if measured is None else measured
    listed = measured.mistakes[:MISTAKES]
    places = measured.places[listed]
    explored = ExploredNodes(classifier, measured.classes_everywhere, measured.everywhere, measured.seconds)
    explored.explain(places[places < known].tolist(), seconds=seconds, on_progress=on_progress)
    mistakes = [
        {
            "name": str(measured.names[node]),
            "truth": int(measured.truth[node]),
            "predicted": int(measured.predicted[node]),
            "probability": float(measured.confidence[node]),
            "explored": explored.place(int(measured.places[node])),
        }
        for node in listed.tolist()
    ]
    explained = [each["explored"] for each in mistakes if each["explored"] is not None]
    facts = {
        "name": name or graph.get("name") or "Your graph",
        "method": AUTO if isinstance(classifier.fitted_, Blend) else classifier.fitted_.prepared.method.name,
        "summary": summarize(graph),
        "choice": choose_metric(classifier.y_, classifier.classes_),
        "notes": graph.get("notes") or [],
        "columns": _columns(graph, classifier),
        "compatibility": _compatibility(graph),
        "measured": measured,
        "importance": _importance(classifier, measured, seconds),
        "curves": _curves(measured),
        "positive": _looked_for(measured),
        "metrics": METRICS,
        "leaderboard": _leaderboard(classifier),
        "mistakes": mistakes,
        "sure": SURE,
        "matrix_numbers": MATRIX_NUMBERS,
        "shown_rows": SHOWN_ROWS,
    }
    first = explained[0] if explained else min(explored.views)
    _write(path, "model.html.j2", classifier, explored, explained=explained, first=first, **facts)
    return measured


def write_node_page(
    classifier: NodeClassifier, node: int, path: str | os.PathLike[str], *, seconds: float = 5.0
) -> None:
    """Write a page that draws a node between its neighbours in both graphs, with the reasons, to walk on from there.

    Args:
        classifier: A fitted one.
        node: The number of a node of the training graph.
        path: The file to write.
        seconds: Time for explaining this node's neighbours, then others.
    """
    explored = ExploredNodes(classifier, classifier.y_)
    explored.explain([node], seconds=seconds)
    name, first = str(node_titles(classifier.graph_, np.array([node]))[0]), explored.place(node)
    _write(path, "node.html.j2", classifier, explored, explained=[], first=first, name=name)


def _write(
    path: str | os.PathLike[str], template: str, classifier: NodeClassifier, explored: ExploredNodes, **facts: Any
) -> None:
    classes = [str(c) for c in classifier.classes_]
    facts |= {"classes": classes, "colours": [class_colour(number) for number in range(len(classes))]}
    facts |= {"explored": explored, "num_nodes": len(classifier.y_)}
    page = find_template("gcnsl.evaluation", template, interval=interval_text)
    atomic_write(path, page.render(facts))


def class_colour(number: int) -> str:
    """A CSS colour for a class that can be seen on light and on dark ground."""
    return _COLOURS[number] if number < len(_COLOURS) else f"hsl({number * 137.5 % 360:.0f} 45% 55%)"


def _compatibility(graph: Data) -> dict[str, list[float]] | None:
    """By class, the shares of the classes among its neighbours; ``None`` if no edge joins labelled nodes."""
    if graph.y is None or not (graph.y >= 0).any():
        return None
    shares = class_compatibility(graph.edge_index, graph.y, len(graph.class_names))
    return dict(zip(map(str, graph.class_names), shares.tolist(), strict=True)) if shares.any() else None


def _columns(graph: Data, classifier: NodeClassifier) -> list[dict[str, Any]]:
    """The columns of the table, as far as the graph or the model knows them."""
    names = ("kind", "distinct", "missing", "features", "treatment", "remark")
    if found := summarize_columns(graph):
        return [{"column": each.name} | {name: getattr(each, name) for name in names} for each in found]
    encoder = classifier.encoder_
    count = Counter(() if encoder is None else encoder.feature_columns)
    kinds = {} if encoder is None else encoder.kinds
    return [{"column": name, "kind": kind, "features": count[name], "remark": None} for name, kind in kinds.items()]


def _importance(classifier: NodeClassifier, measured: Measured, seconds: float) -> Importance | None:
    """What matters over all on the measured nodes, as far as they are of the training graph."""
    chosen: dict[str, Any] = {}
    known = measured.places < len(classifier.y_)
    if measured.kind == "test" and known.any():
        chosen = {"nodes": measured.places[known], "truth": measured.truth[known]}
    try:
        return measure_importance(classifier, **chosen, seconds=seconds / 3)
    except InputError:  # of an ensemble without out-of-fold models
        return None


def _looked_for(measured: Measured) -> int:
    """The class whose threshold is shown first: that which is looked for, or the rarest."""
    counts = np.bincount(measured.truth, minlength=len(measured.class_names))
    return int(counts.argmin()) if measured.positive is None else measured.positive


def _curves(measured: Measured) -> list[dict[str, Any]]:
    """What every threshold would find of each class: ``[threshold, alerts, found]``, the highest threshold first.

    They have four digits, so that what is found with what the page shows is the same, but for the one in use.
    """
    found, chosen = list[dict[str, Any]](), measured.threshold
    for number in range(len(measured.class_names) if 1 < len(measured.class_names) <= CURVES else 0):
        curve = Curve.of(measured.probabilities[:, number], measured.truth == number)
        used = chosen.value if chosen is not None and chosen.positive == number else 0.5
        values = {used, *(float(f"{0.9995 * value:.4g}") for value, *_ in curve.points())}
        points = [[value, *curve.at(value)] for value in sorted(values, reverse=True)]
        found.append({"points": [[1.0, 0, 0], *points], "positives": curve.positives})  # none reaches the first
    return found


def _leaderboard(classifier: NodeClassifier) -> dict[str, Any] | None:
    """The rows of the leaderboard, its columns of scores, the metric, and the range of all scores, if there are any."""
    table = getattr(classifier, "leaderboard_", None)
    columns = [] if table is None else shown_scores(table)
    if table is None or not columns:
        return None
    metric, scores = table["metric"].iloc[0], table[columns].astype(float)
    return {
        "metric": metric,
        "text": METRICS[metric].text,
        "low": float(np.nanmin(scores)),
        "high": float(np.nanmax(scores)),
        "rows": table.astype(object).where(table.notna(), None).to_dict("records"),
        "columns": columns,
        "chosen_by": classifier.chosen_by_,
    }


class ExploredNodes:
    """Explained nodes and all neighbours that are shown with them, as plain values for JSON.

    Args:
        classifier: A fitted one.
        truth: The class numbers of the training graph's nodes (n), -1 where they are not known even now.
        probabilities: What ``classifier.predict_proba()`` returns (n × C), if it is at hand.
        predict_seconds: How long that took.

    Attributes:
        nodes: A node each: ``[name, class known to training, true class, predicted class, probability, use]``. Classes
            are numbers, -1 if not known; the use is 1 for training, 2 for validation, else 0.
        views: What explains a node, by its place in ``nodes``.
    """

    def __init__(
        self, classifier: NodeClassifier, truth: Ints, probabilities: Floats | None = None, predict_seconds: float = 0.0
    ) -> None:
        self._classifier, self._truth = classifier, truth
        if probabilities is None:
            began = time.monotonic()
            probabilities, predict_seconds = classifier.predict_proba(), time.monotonic() - began
        self._probabilities, self._features_seconds = probabilities, FORWARD_PASSES * predict_seconds
        self._names = classifier.classes_.tolist()
        self._classes = {c: number for number, c in enumerate(self._names)}
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
            in_time = len(self.views) < FEATURED and spent + self._features_seconds < seconds / 3
            in_full = in_time or not self.views
            told = explain(
                self._classifier,
                number,
                probabilities=self._probabilities,
                reasoned=2 * DRAWN,
                against=None if self._truth[number] < 0 else self._names[self._truth[number]],
                edges=DRAWN if in_full else 0,
                with_contributions=in_full,
            )
            view = self.views[self._place(told.node)] = self._view(told)
            size += len(json.dumps(view))
            if len(self.views) <= len(first):  # the loop goes on with what is added here
                shown = (*told.original[:DRAWN], *(told.reconnected or [])[:DRAWN])
                waiting += [other.number for other in shown]
            if on_progress is not None:
                on_progress(len(self.views), len(self._truth))

    def place(self, number: int) -> int | None:
        """Where a node of the training graph is in ``nodes``, if it is explained."""
        place = self._places.get(number)
        return place if place in self.views else None

    def _place(self, node: Node) -> int:
        if node.number not in self._places:
            self._places[node.number] = len(self.nodes)
            truth, known = int(self._truth[node.number]), self._classes.get(node.label, -1)
            own = (known, truth, self._classes[node.predicted], round(node.probability, 3), _USES.index(node.used_for))
            self.nodes.append([node.title, *own])
        return self._places[node.number]

    def _view(self, told: Explanation) -> dict[str, Any]:
        """The likeliest classes, what speaks for the first of them, and the neighbours in both graphs."""
        shares = told.contributions or []
        return {
            "likely": [[self._classes[c], round(p, 3)] for c, p in list(told.probabilities.items())[:3]],
            "evidence": [[name, round(value, 2)] for name, value in told.evidence.items()],
            "rival": self._classes[told.rival],
            "contributions": [[each.name, each.value_text, round(each.log_odds, 2)] for each in shares[:SHARES]],
            "alone": told.alone and [self._classes[told.alone.predicted], round(told.alone.probability, 3)],
            "given": self._side(told, told.original),
            "learned": None if told.reconnected is None else self._side(told, told.reconnected),
            "crowded": told.is_crowded,
        }

    def _side(self, told: Explanation, neighbours: list[Neighbour]) -> dict[str, Any]:
        """Neighbours: their number, a summary, and of some the place, the similarity and what is told of the edge."""
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
                    None if other.effect is None else round(other.effect, 2),
                ]
                for other in neighbours[: 0 if is_learned and told.is_crowded else DRAWN]
            ],
        }
