import socket

import networkx as nx
import torch

from gcnsl.datasets import load
from gcnsl.datasets.loading import load_debian


def test_the_bundled_graph_is_connected_and_named_and_needs_no_network(monkeypatch):
    monkeypatch.setattr(socket, "socket", None)
    monkeypatch.delenv("GCNSL_DATA", raising=False)
    data = load("debian", split=None)
    graph = nx.Graph(data.edge_index.T.tolist())
    assert len(graph) == data.num_nodes
    assert nx.is_connected(graph)
    assert data.node_ids.tolist() == sorted(set(data.node_ids.tolist()))
    assert data.feature_names == sorted(set(data.feature_names))
    node = data.node_ids.tolist().index("0ad")
    assert data.class_names[data.y[node]] == "games"
    words = [data.feature_names[j] for j in torch.nonzero(data.x[node]).flatten()]
    assert words == ["game", "real", "strategy", "time"]  # of "Real-time strategy game of ancient warfare"


def test_sparse_features_are_the_dense_ones():
    data = load_debian(sparse=True)
    assert data.x.layout == torch.sparse_csr
    torch.testing.assert_close(data.x.to_dense(), load_debian().x)
