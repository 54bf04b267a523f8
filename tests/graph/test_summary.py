import json
import math
from dataclasses import asdict

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from gcnsl import from_arrays
from gcnsl.graph import adjusted_homophily, arc_homophily, edge_homophily, node_homophily, summarize
from gcnsl.graph.summary import class_compatibility

from .cases import TWIN_EDGES as EDGES
from .cases import TWIN_X as X
from .cases import TWIN_Y as Y


def test_homophily_by_hand() -> None:
    # edges 0-1 (agree), 1-2, 2-3; the loop 2-2 and 3-4 (4 unlabelled) count for nothing
    data = from_arrays(torch.eye(6), [[0, 1, 2, 2, 3], [1, 2, 3, 2, 4]], [0, 0, 1, 2, -1, 0])
    assert edge_homophily(data.edge_index, data.y) == pytest.approx(1 / 3)
    assert edge_homophily(data.edge_index, data.y, loops=True) == pytest.approx(2 / 4), "as in the paper"
    # node 0: 1/1, node 1: 1/2, node 2: 0/2, node 3: 0/1; 4 is unlabelled, 5 has no neighbour
    assert node_homophily(data.edge_index, data.y) == pytest.approx((1 + 1 / 2 + 0 + 0) / 4)
    # edge ends: class 0 has 1 + 2 = 3, class 1 has 1 + 1 = 2, class 2 has 1
    chance = (3**2 + 2**2 + 1**2) / 6**2
    assert adjusted_homophily(data.edge_index, data.y) == pytest.approx((1 / 3 - chance) / (1 - chance))


def test_arcs_by_hand() -> None:
    # arcs 0→1 (agree), 1→2, 2→1; the loop 2→2 and 3→4 (4 unlabelled) count for nothing
    data = from_arrays(torch.eye(6), [[0, 1, 2, 2, 3], [1, 2, 1, 2, 4]], [0, 0, 1, 2, -1, 0], directed=True)
    # out: node 0 1/1, node 1 0/1, node 2 0/1; in: node 1 1/2, node 2 0/1
    assert arc_homophily(data.arc_index, data.y) == pytest.approx({"arc": 1 / 3, "out": 1 / 3, "in": 1 / 4})
    assert all(map(math.isnan, arc_homophily(torch.empty(2, 0, dtype=torch.long), data.y).values()))


def test_class_compatibility() -> None:
    data = from_arrays(X, EDGES, Y)
    shares = class_compatibility(data.edge_index, data.y, 2)
    # class a: its four edge ends all reach b; class b: four reach a, two lie on 3-4; the loop is no neighbour
    assert torch.allclose(shares, torch.tensor([[0, 1], [4 / 6, 2 / 6]], dtype=torch.double))


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
