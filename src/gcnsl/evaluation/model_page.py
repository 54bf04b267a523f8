"""A page about one's own graph and a model of it: how good the model is, where it errs, and why."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable
from typing import Any

import numpy as np
from torch_geometric.data import Data

from gcnsl.estimator import NodeClassifier
from gcnsl.evaluation.explored_nodes import ExploredNodes
from gcnsl.evaluation.imbalance import find_imbalance
from gcnsl.evaluation.measured_nodes import SURE, MeasuredNodes, measured_nodes
from gcnsl.files import atomic_write
from gcnsl.graph import simple_undirected, summarize
from gcnsl.graph.edges import check_edges
from gcnsl.graph.summary import class_compatibility
from gcnsl.pictures import find_template
from gcnsl.selection import AUTO, Blend
from gcnsl.selection.leaderboard import shown_scores
from gcnsl.training import METRICS
from gcnsl.training.metrics import most_probable

MISTAKES = 200
"""Number of mistakes that are listed, the most confident first."""
MATRIX_NUMBERS = 12
"""With more classes than this, the cells of a matrix are too small for numbers."""
_COLOURS = (
    "#3b82c4", "#e0803a", "#3fa35b", "#c9504e", "#8f6cc4", "#8c6d52", "#d168a6", "#a9a52f", "#2fa8b5", "#7f8a94",
)  # fmt: skip


def write_model_page(
    classifier: NodeClassifier,
    path: str | os.PathLike[str],
    data: Data | None = None,
    *,
    nodes: Any = None,
    name: str | None = None,
    seconds: float = 30.0,
    on_progress: Callable[[int, int], None] | None = None,
) -> MeasuredNodes:
    """Write a page about a fitted classifier and its graph: one HTML file that needs no network.

    Args:
        classifier: A fitted one. If it has a ``leaderboard_``, the page shows it.
        path: The file to write.
        data: A checked graph: the training graph with labels that training did not know, or one that has grown since.
            The page measures on nodes whose labels were used neither for training nor for validation. If there are
            none, it measures on the validation nodes or, if an ensemble has learned from all labels, on what its models
            predict for nodes they had not learned from; it says so.
        nodes: Measure only on these of them (n, boolean), those of a test mask for example.
        name: What to call the graph; by default what ``data`` calls it.
        seconds: Time for explaining nodes. The most confident mistakes come first, then their neighbours, then a random
            sample, as far as the time and the size of the page allow.
        on_progress: Called with the number of nodes explained so far and the number of all after each of them.

    Returns:
        The nodes that the page measures on.
    """
    graph, known = classifier.graph_ if data is None else data, len(classifier.y_)
    measured = measured_nodes(classifier, graph, nodes=nodes)
    listed = measured.mistakes[:MISTAKES]
    places = measured.places[listed]
    explored = ExploredNodes(classifier, measured.all_classes)
    explored.explain(places[places < known].tolist(), seconds=seconds, on_progress=on_progress)
    graph = _with_report(graph)
    page = find_template("gcnsl.evaluation", "model.html.j2").render(
        name=name or graph.get("name") or "Your graph",
        method=AUTO if isinstance(classifier.fitted_, Blend) else classifier.fitted_.prepared.method.name,
        summary=summarize(graph),
        imbalance=find_imbalance(graph.y, graph.class_names) if _is_labelled(graph) else None,
        compatibility=_compatibility(graph),
        measured=measured,
        metrics=METRICS,
        leaderboard=_leaderboard(classifier),
        mistakes=[_mistake(measured, node, explored, known) for node in listed.tolist()],
        classes=[str(c) for c in classifier.classes_],
        colours=[class_colour(number) for number in range(len(classifier.classes_))],
        explored=explored,
        num_nodes=known,
        sure=SURE,
        matrix_numbers=MATRIX_NUMBERS,
    )
    atomic_write(path, page)
    return measured


def class_colour(number: int) -> str:
    """A CSS colour for a class that can be seen on light and on dark ground."""
    return _COLOURS[number] if number < len(_COLOURS) else f"hsl({number * 137.5 % 360:.0f} 45% 55%)"


def _with_report(graph: Data) -> Data:
    """The graph with the counts of its edges, which a model on disk does not keep."""
    if "edge_report" in graph:
        return graph
    reported, listed = copy.copy(graph), graph.get("arc_index", graph.edge_index)
    reported.edge_report = simple_undirected(*check_edges(listed, graph.num_nodes), graph.num_nodes)[1]
    return reported


def _is_labelled(graph: Data) -> bool:
    return graph.y is not None and bool((graph.y >= 0).any())


def _compatibility(graph: Data) -> dict[str, list[float]] | None:
    """By class, the shares of the classes among its neighbours; ``None`` if no edge joins labelled nodes."""
    if not _is_labelled(graph):
        return None
    shares = class_compatibility(graph.edge_index, graph.y, len(graph.class_names))
    return dict(zip(map(str, graph.class_names), shares.tolist(), strict=True)) if shares.any() else None


def _mistake(measured: MeasuredNodes, node: int, explored: ExploredNodes, known: int) -> dict[str, Any]:
    place, probabilities = int(measured.places[node]), measured.probabilities[node]
    return {
        "name": str(measured.names[node]),
        "truth": int(measured.truth[node]),
        "predicted": int(most_probable(probabilities)),
        "probability": float(probabilities.max()),
        "explored": explored.place(place) if place < known else None,
    }


def _leaderboard(classifier: NodeClassifier) -> dict[str, Any] | None:
    """The rows of the leaderboard, its columns of scores, the metric, and the range of all scores.

    ``None`` if there is no leaderboard.
    """
    table = getattr(classifier, "leaderboard_", None)
    if table is None:
        return None
    columns = shown_scores(table)
    if not columns:
        return None
    name, scores = table["metric"].iloc[0], table[columns].astype(float)
    rows = table.astype(object).where(table.notna(), None).to_dict("records")
    low, high = float(np.nanmin(scores)), float(np.nanmax(scores))
    found = {"metric": name, "text": METRICS[name].text, "low": low, "high": high, "rows": rows, "columns": columns}
    return found | {"chosen_by": classifier.chosen_by_}
