import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.data import Data

from gcnsl import InputError, from_arrays, from_data, from_networkx, from_scipy
from gcnsl.graph import GraphWarning

X = np.arange(8.0).reshape(4, 2)
EDGES = [[0, 1, 1, 3], [1, 0, 2, 3]]
Y = [0, 1, 1, -1]
SIMPLE = [[0, 1, 1, 2, 3], [1, 0, 2, 1, 3]]


def test_every_source_gives_the_same_graph() -> None:
    plain = from_arrays(X, EDGES, Y)
    adjacency = sp.coo_array((np.ones(4), EDGES), shape=(4, 4))
    graph = nx.DiGraph([(10, 20), (20, 10), (20, 30), (40, 40)])
    for node, features, label in zip(graph, X, [0, 1, 1, None], strict=True):
        graph.nodes[node].update(
            x=features, a=features[0], b=features[1], **({} if label is None else {"label": label})
        )
    same = [
        from_scipy(adjacency, X, Y),
        from_data(Data(x=torch.tensor(X), edge_index=torch.tensor(EDGES), y=torch.tensor(Y))),
        from_networkx(graph),
        from_networkx(graph, features=["a", "b"]),
    ]
    for data in [plain, *same]:
        assert data.edge_index.tolist() == SIMPLE
        assert data.x.dtype == torch.float32
        assert data.x.tolist() == X.tolist()
        assert data.y.tolist() == Y
        assert data.class_names == ["0", "1"]
    assert same[2].node_ids.tolist() == [10, 20, 30, 40]


def test_checking_twice_changes_nothing() -> None:
    once = from_arrays(X, EDGES, ["b", "a", None, "b"], train_mask=[1, 1, 0, 0], node_ids=list("wxyz"))
    twice = from_data(once)
    assert twice.edge_index.equal(once.edge_index)
    assert twice.y.tolist() == once.y.tolist() == [1, 0, -1, 1]
    assert twice.class_names == ["a", "b"]
    assert twice.train_mask.equal(once.train_mask)
    assert twice.node_ids.tolist() == list("wxyz")


def test_sparse_features_stay_sparse() -> None:
    for sparse in (sp.csr_array(X), sp.coo_matrix(X), torch.tensor(X).to_sparse(), torch.tensor(X).to_sparse_csr()):
        data = from_arrays(sparse, EDGES, Y)
        assert data.x.layout == torch.sparse_csr
        assert data.x.to_dense().tolist() == X.tolist()


def test_a_graph_without_edges_or_labels() -> None:
    data = from_arrays(X, np.empty((2, 0), dtype=int))
    assert data.num_edges == 0
    assert data.y is None


def test_label_encoding() -> None:
    encode = lambda y: (from_arrays(X, EDGES, y).y.tolist(), from_arrays(X, EDGES, y).class_names)  # noqa: E731
    assert encode([1.0, float("nan"), 3.0, 1.0]) == ([0, -1, 1, 0], ["1", "3"])
    assert encode(np.array([7, -1, None, 5], dtype=object)) == ([1, -1, -1, 0], ["5", "7"])
    assert encode(np.array([2, "a", None, 1], dtype=object)) == ([1, 2, -1, 0], ["1", "2", "a"])
    assert encode([True, False, True, False]) == ([1, 0, 1, 0], ["False", "True"])


NAN, BIG = X.copy(), X.copy()
NAN[2, 1], BIG[0, 1] = np.nan, 1e300


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"x": np.empty((0, 2))}, r"x has shape \(0, 2\): the graph is empty"),
        ({"x": np.empty((4, 0))}, "no features"),
        ({"x": np.ones(4)}, r"x has shape \(4,\): give a matrix"),
        ({"x": NAN}, r"x\[2, 1\] is nan"),
        ({"x": sp.csr_array(NAN)}, r"x\[2, 1\] is nan"),
        ({"x": BIG}, r"x\[0, 1\] is 1e\+300"),
        ({"x": [["a", "b"]] * 4}, "features must be numbers"),
        ({"x": [[1], [2, 3]]}, "x is no array"),
        ({"edge_index": [[0], [4]]}, r"edge_index\[1, 0\] is 4, but there are 4 nodes"),
        ({"edge_index": [[-1], [0]]}, r"edge_index\[0, 0\] is -1"),
        ({"edge_index": [[0, 1]] * 3}, "transpose it"),
        ({"edge_index": [[0.5], [1]]}, "integer node numbers"),
        ({"y": [0, 1]}, r"y has shape \(2,\): give one label for each of the 4 nodes"),
        ({"y": [0, 0, 0, -1]}, "y has one class only"),
        ({"y": [0, 1, -2, 0]}, r"y\[2\] is -2: labels must be from 0 to 1"),
        ({"y": [0, 1, 2, 0], "class_names": ["a", "b"]}, r"y\[2\] is 2: labels must be from 0 to 1"),
        ({"y": [0.5, 1, 2, 3]}, "y holds 0.5"),
        ({"y": ["a", "b", "a", "b"], "class_names": ["a", "b"]}, "class_names goes with integer labels"),
        ({"train_mask": [1, 1, 0]}, r"train_mask has shape \(3,\): give 4 rows"),
        ({"train_mask": [1, 2, 0, 0]}, "boolean mask"),
        ({"train_mask": [1, 1, 0, 0], "val_mask": np.ones((4, 2), dtype=bool)}, "different numbers of runs"),
        ({"train_mask": [1, 1, 0, 0], "test_mask": [0, 1, 0, 0]}, "node 1 is in train_mask and test_mask of run 0"),
        ({"train_mask": [1, 1, 0, 1]}, r"train_mask\[3, 0\] selects a node without a label"),
        ({"train_mask": [0, 0, 0, 0]}, "train_mask selects no node in run 0"),
        ({"y": None, "train_mask": [1, 1, 0, 0]}, "train_mask is given without y"),
        ({"node_ids": ["a"]}, "node_ids has 1 entries: give 4"),
        ({"feature_names": ["a"]}, "feature_names has 1 entries: give 2"),
    ],
)
def test_bad_input_is_named(arguments, message) -> None:
    with pytest.raises(InputError, match=message):
        from_arrays(**{"x": X, "edge_index": EDGES, "y": Y, **arguments})


def test_untrained_class_warns() -> None:
    with pytest.warns(GraphWarning, match="class '1' has no training node in run 0: it can't be learnt there"):
        from_arrays(X, EDGES, Y, train_mask=[1, 0, 0, 0])


def test_bad_sources_are_named() -> None:
    with pytest.raises(InputError, match=r"adjacency has shape \(2, 3\)"):
        from_scipy(sp.csr_array((2, 3)), X)
    with pytest.raises(InputError, match="x has 4 rows, but adjacency has 3"):
        from_scipy(sp.csr_array((3, 3)), X)
    with pytest.raises(InputError, match=r"data\.x is None"):
        from_data(Data(edge_index=torch.tensor(EDGES)))
    with pytest.raises(InputError, match=r"data\.edge_index is None"):
        from_data(Data(x=torch.tensor(X)))
    with pytest.raises(InputError, match="node 1 has no attribute 'x'"):
        from_networkx(nx.path_graph([1, 2]))
    with pytest.raises(InputError, match="the graph is empty"):
        from_networkx(nx.Graph())
