import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.data import Data

from gcnsl import InputError, from_arrays, from_data, from_networkx, from_scipy

from .cases import EDGES, X, Y

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


def test_a_graph_without_edges_or_labels() -> None:
    data = from_arrays(X, np.empty((2, 0), dtype=int))
    assert data.num_edges == 0
    assert data.y is None


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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"node_ids": ["a"]}, "node_ids has 1 entries: give 4"),
        ({"feature_names": ["a"]}, "feature_names has 1 entries: give 2"),
    ],
)
def test_bad_names_are_named(arguments, message) -> None:
    with pytest.raises(InputError, match=message):
        from_arrays(**{"x": X, "edge_index": EDGES, "y": Y, **arguments})
