import socket

import networkx as nx
import numpy as np
import pytest
import torch

from gcnsl.datasets import load
from gcnsl.datasets.debian import load_debian
from gcnsl.errors import InputError


def test_the_bundled_graph_is_connected_and_named():
    data = load_debian()
    graph = nx.Graph(data.edge_index.T.tolist())
    assert len(graph) == data.num_nodes
    assert nx.is_connected(graph)
    assert data.node_ids.tolist() == sorted(set(data.node_ids.tolist()))
    assert data.feature_names == sorted(set(data.feature_names))
    node = data.node_ids.tolist().index("0ad")
    assert data.class_names[data.y[node]] == "games"
    words = [data.feature_names[j] for j in torch.nonzero(data.x[node]).flatten()]
    assert words == ["game", "real", "strategy", "time"]  # of "Real-time strategy game of ancient warfare"


def test_the_bundled_graph_loads_without_a_network(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("no network is needed")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.delenv("GCNSL_DATA", raising=False)
    data = load("debian", runs=2)
    assert data.train_mask.shape == (data.num_nodes, 2)


def test_sparse_features_are_the_dense_ones():
    data = load_debian(sparse=True)
    assert data.x.layout == torch.sparse_csr
    torch.testing.assert_close(data.x.to_dense(), load_debian().x)


@pytest.mark.parametrize("content", [b"not a zip file", None])
def test_a_foreign_file_is_refused(tmp_path, content):
    path = tmp_path / "graph.npz"
    if content is None:
        np.savez(path, edges=np.zeros((2, 2)), words=np.array([object()], dtype=object))
    else:
        path.write_bytes(content)
    with pytest.raises(InputError, match="is not a graph of Debian packages"):
        load_debian(path)
