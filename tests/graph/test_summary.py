import json
from dataclasses import asdict

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from gcnsl import from_arrays, load
from gcnsl.graph import summarize
from gcnsl.graph.picture import class_compatibility, draw_graph

# 0 and 1 are twins (neighbours 2 and 3, class a); 4 hangs on 3; 5 has only a loop; 6 is unlabelled and alone.
X = np.array([[1, 0], [1, 0], [0, 0], [2, 1], [0, 3], [-0.0, 0], [5, 5]])
EDGES = [[0, 0, 1, 1, 3, 5, 0], [2, 3, 2, 3, 4, 5, 2]]
Y = ["a", "a", "b", "b", "b", "b", None]


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
    assert json.loads(json.dumps(asdict(summary)))["homophily"]["edge"] == pytest.approx(2 / 6)


def test_a_graph_without_labels_or_edges() -> None:
    summary = summarize(from_arrays(X, np.empty((2, 0), dtype=int)))
    assert summary.homophily == {"edge": None, "node": None, "adjusted": None}
    assert summary.leakage is None
    assert summary.split == {}
    assert summary.warnings[0].startswith("The graph has no edges")


def test_leakage_on_real_graphs(data_root) -> None:
    leakage = {name: summarize(load(name, split="geom-gcn", root=data_root)).leakage for name in ("chameleon", "texas")}
    assert leakage["chameleon"] == pytest.approx(0.468, abs=0.005)
    assert leakage["texas"] < 0.1


def test_untrained_class_of_texas_is_told(data_root) -> None:
    warnings = summarize(load("texas", split="geom-gcn", root=data_root)).warnings
    assert any("has no training node in run" in warning for warning in warnings)


def test_class_compatibility() -> None:
    data = from_arrays(X, EDGES, Y)
    shares = class_compatibility(data.edge_index, data.y, 2)
    # class a: its four edge ends all reach b; class b: four reach a, two lie on 3-4, one is the loop
    assert torch.allclose(shares, torch.tensor([[0, 1], [4 / 7, 3 / 7]], dtype=torch.double))


@pytest.mark.parametrize("labels", [Y, None])
def test_picture_is_written(labels, tmp_path) -> None:
    data = from_arrays(X, EDGES, labels)
    path = draw_graph(data, summarize(data), tmp_path / "new" / "picture.png")
    assert path.read_bytes().startswith(b"\x89PNG")
