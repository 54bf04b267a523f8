import json
from dataclasses import asdict

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

from gcnsl import from_arrays, load
from gcnsl.graph import summarize

from .cases import TWIN_EDGES as EDGES
from .cases import TWIN_X as X
from .cases import TWIN_Y as Y


@pytest.mark.parametrize("x", [X, sp.csr_array(X)])
def test_by_hand(x) -> None:
    train, test = [1, 0, 1, 0, 0, 0, 0], [0, 1, 0, 1, 0, 0, 0]
    summary = summarize(from_arrays(x, EDGES, Y, train_mask=train, test_mask=test))
    assert (summary.nodes, summary.edges, summary.loops, summary.repeated_entries) == (7, 6, 1, 1)
    assert summary.classes == {"a": 2, "b": 4}
    assert summary.unlabelled == 1
    assert summary.degree == {"min": 0, "median": 2, "mean": pytest.approx(10 / 7), "max": 3}
    assert summary.isolated_nodes == 2
    assert summary.zero_feature_rows == 2
    assert summary.repeated_feature_rows == 2
    assert summary.twins == 2
    assert summary.split == {"runs": 1, "train": 2, "test": 2, "left_out": 3}
    assert summary.leakage == 0.5
    assert any("50% of the test nodes have a twin" in warning for warning in summary.warnings)
    assert json.loads(json.dumps(asdict(summary)))["homophily"]["edge"] == pytest.approx(1 / 5)
    assert summary.labelled_edges == 5


def test_a_graph_without_labels_or_edges() -> None:
    summary = summarize(from_arrays(X, np.empty((2, 0), dtype=int)))
    assert summary.homophily == {"edge": None, "node": None, "adjusted": None}
    assert summary.leakage is None
    assert summary.split == {}
    assert summary.warnings[0].startswith("The graph has no edges")


def test_a_graph_without_features() -> None:
    summary = summarize(from_arrays(np.empty((7, 0)), EDGES, Y))
    assert summary.features == summary.zero_feature_rows == 0
    assert any("no features: structural ones are made" in warning for warning in summary.warnings)


def test_directions_and_weights_by_hand() -> None:
    weight = [1.0, 2, 3, 4, 5, 6, 7]
    summary = summarize(from_arrays(X, EDGES, Y, directed=True, edge_weight=weight))
    assert summary.arcs == 6
    assert summary.reciprocity == 0
    assert summary.weights == {"min": 2, "mean": pytest.approx(28 / 6), "max": 8}, "0→2 is repeated"
    assert summary.arc_homophily["arc"] == pytest.approx(1 / 5)
    assert summary.arc_homophily["out"] == pytest.approx((0 + 0 + 1) / 3)
    assert json.loads(json.dumps(asdict(summary)))["arcs"] == 6
    both = summarize(from_arrays(X, [[0, 1, 2, 3], [1, 0, 3, 3]], Y, directed=True))
    assert both.reciprocity == pytest.approx(2 / 3)
    assert both.weights == {}
    plain = summarize(from_arrays(X, [[0, 3], [1, 3]], Y, edge_weight=[1, 4]))
    assert (plain.arcs, plain.reciprocity, plain.arc_homophily) == (None, None, {})
    assert plain.weights["mean"] == 2.5, "an edge counts once, like a loop"


def test_a_directed_graph_without_arcs() -> None:
    summary = summarize(from_arrays(X, np.empty((2, 0), dtype=int), directed=True, edge_weight=[]))
    assert (summary.arcs, summary.reciprocity, summary.weights) == (0, None, {})
    assert summary.arc_homophily == {"arc": None, "out": None, "in": None}


def test_reciprocity_is_networkx(data_root) -> None:
    data = load("chameleon", split=None, root=data_root, directed=True)
    graph = nx.DiGraph(data.arc_index.T.tolist())
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))
    assert summarize(data).reciprocity == pytest.approx(nx.overall_reciprocity(graph))


def test_leakage_on_real_graphs(data_root) -> None:
    leakage = {name: summarize(load(name, split="geom-gcn", root=data_root)).leakage for name in ("chameleon", "texas")}
    assert leakage["chameleon"] == pytest.approx(0.468, abs=0.005)
    assert leakage["texas"] < 0.1


def test_untrained_class_of_texas_is_told(data_root) -> None:
    warnings = summarize(load("texas", split="geom-gcn", root=data_root)).warnings
    assert any("has no training node in run" in warning for warning in warnings)
