"""The bundled graph against its data card."""

import re
import socket
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import torch

from gcnsl.datasets import load
from gcnsl.datasets.debian import BUNDLED_FILE, load_debian, read_npz
from gcnsl.errors import InputError
from gcnsl.graph import adjusted_homophily, edge_homophily, node_homophily

CARD = Path(__file__).parents[2] / "docs" / "debian.md"


def card_table(heading):
    """The rows of the first table under a heading of the card: first cell → the other cells."""
    section = re.split(r"^## ", CARD.read_text(encoding="utf-8"), flags=re.MULTILINE)
    text = next(part for part in section if part.startswith(heading))
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    return {row[0]: row[1:] for row in rows[2:]}


def test_the_bundled_graph_is_what_its_card_says():
    data = load_debian()
    degree = torch.bincount(data.edge_index[0], minlength=data.num_nodes)
    measured = {
        "nodes": f"{data.num_nodes:,}",
        "edges": f"{data.num_edges // 2:,}",
        "classes": str(len(data.class_names)),
        "words": str(data.num_features),
        "words of a node (least, mean, most)": "{:.0f}, {:.2f}, {:.0f}".format(
            *(float(f(data.x.sum(dim=1))) for f in (torch.min, torch.mean, torch.max))
        ),
        "degree (least, median, mean, most)": "{:.0f}, {:.0f}, {:.2f}, {:.0f}".format(
            *(float(f(degree.double())) for f in (torch.min, torch.median, torch.mean, torch.max))
        ),
        "nodes with one neighbour": str(int((degree == 1).sum())),
        "distinct bags of words": f"{len(data.x.unique(dim=0)):,}",
        "words that fewer than five nodes use": str(int((data.x.sum(dim=0) < 5).sum())),
        "edge homophily": f"{edge_homophily(data.edge_index, data.y):.4f}",
        "node homophily": f"{node_homophily(data.edge_index, data.y):.4f}",
        "adjusted homophily": f"{adjusted_homophily(data.edge_index, data.y):.4f}",
        "file": f"{BUNDLED_FILE.stat().st_size:,} bytes",
    }
    assert measured == {name: cells[0] for name, cells in card_table("Numbers").items()}


def test_the_bundled_classes_are_what_the_card_says():
    data = load_debian()
    source, target = data.y[data.edge_index]
    measured = {}
    for c, name in enumerate(data.class_names):
        ends = target[source == c]
        size = int((data.y == c).sum())
        measured[name] = [str(size), f"{len(ends) / size:.2f}", f"{float((ends == c).double().mean()):.2f}"]
    assert measured == card_table("Classes")


def test_the_bundled_provenance_is_on_the_card():
    (index,) = read_npz(BUNDLED_FILE)[1]["indexes"]
    card = CARD.read_text(encoding="utf-8")
    assert all(index[key] in card for key in ("release", "date", "path", "sha256"))
    assert load_debian().provenance == [", ".join(index.values())]


def test_the_bundled_file_is_small_and_holds_no_pickle():
    assert BUNDLED_FILE.stat().st_size < 300_000
    with np.load(BUNDLED_FILE, allow_pickle=False) as stored:
        assert all(stored[name].dtype.kind in "uS" for name in stored.files)


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
