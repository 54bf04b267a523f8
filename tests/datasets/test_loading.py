import zipfile
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.data import Data, InMemoryDataset

import gcnsl
from gcnsl import InputError, load
from gcnsl.datasets import is_known
from gcnsl.datasets.benchmarks import synthetic_name
from gcnsl.graph import edge_homophily


def test_synthetic_graphs_by_name() -> None:
    assert [synthetic_name(h) for h in (0.0, 0.3, 1.0)] == ["synthetic-h0", "synthetic-h0.3", "synthetic-h1"]
    assert is_known("synthetic-h0.3")
    for other in ("synthetic-hx", "synthetic-h7", "synthetic-hnan", "synthetic", "coral"):
        assert not is_known(other)
    for same in ("synthetic-h0.30", "synthetic-h0_3", "synthetic-h 0.3", "synthetic-h3e-1", "synthetic-h-0"):
        assert not is_known(same), "one graph would have two names"
    data = load("synthetic-h0.3", runs=2, seed=1)
    assert edge_homophily(data.edge_index, data.y) == pytest.approx(0.3, abs=1e-3)
    assert data.name == "synthetic-h0.3"
    assert data.train_mask.shape == (1000, 2)
    other = load("synthetic-h0.3", runs=2, seed=2)
    assert torch.equal(data.edge_index, other.edge_index), "predict knows no seed, and must find the same graph"
    assert not torch.equal(data.train_mask, other.train_mask)


@pytest.fixture
def arrays():
    generator = np.random.default_rng(0)
    masks = np.zeros((3, 2, 6), dtype=bool)
    masks[0, :, :3], masks[1, :, 3:4], masks[2, :, 4:] = True, True, True
    return {
        "node_features": generator.random((6, 4), dtype=np.float32),
        "node_labels": np.array([0, 1, 0, 1, 0, 1]),
        "edges": np.array([[0, 1], [2, 3], [4, 5]]),
        **dict(zip(("train_masks", "val_masks", "test_masks"), masks, strict=True)),
    }


def test_npz_by_path(arrays, tmp_path) -> None:
    np.savez(tmp_path / "mine.npz", **arrays)
    data = load(tmp_path / "mine.npz", split="stored")
    assert data.name == "mine"
    assert data.x.numpy() == pytest.approx(arrays["node_features"])
    assert data.train_mask.shape == (6, 2)
    assert data.edge_report.edges == 3
    assert load(str(tmp_path / "mine.npz"), runs=4).test_mask.shape == (6, 4)
    assert load(tmp_path / "mine.npz", directed=True).arc_index.tolist() == [[0, 2, 4], [1, 3, 5]]


def test_bad_npz(arrays, tmp_path) -> None:
    (tmp_path / "text.npz").write_text("not a zip file")
    np.savez(tmp_path / "objects.npz", **{**arrays, "edges": np.array([Path("x")], dtype=object)})
    del arrays["edges"], arrays["val_masks"]
    np.savez(tmp_path / "part.npz", **arrays)
    for name in ("text", "objects"):
        with pytest.raises(InputError, match=rf"{name}\.npz can't be read as a graph"):
            load(tmp_path / f"{name}.npz")
    with pytest.raises(InputError, match=r"has no array 'edges', only .*: add edges"):
        load(tmp_path / "part.npz")
    with pytest.raises(InputError, match="add edges, val_masks"):
        load(tmp_path / "part.npz", split="stored")
    with pytest.raises(InputError, match="does not exist"):
        load(tmp_path / "absent.npz")


def test_public_collections_and_saved_data_are_the_same_graph(arrays, tmp_path) -> None:
    x, y, ends = sp.csr_matrix(arrays["node_features"]), arrays["node_labels"], arrays["edges"]
    adj = sp.csr_matrix((np.ones(3), ends.T), shape=(6, 6))
    parts = {f"adj_{name}": getattr(adj, name) for name in ("data", "indices", "indptr", "shape")}
    np.savez(tmp_path / "pickled.npz", adj_matrix=adj, node_attr=x, node_label=y)
    np.savez(tmp_path / "parts.npz", **parts, attr_matrix=x.toarray(), labels=np.eye(2)[y])
    graph = Data(x=torch.from_numpy(x.toarray()), edge_index=torch.from_numpy(ends.T), y=torch.from_numpy(y))
    torch.save(graph, tmp_path / "data.pt")
    torch.save(InMemoryDataset.collate([graph]), tmp_path / "dataset.pt")
    torch.save(graph.to_dict(), tmp_path / "tensors.pt")
    with zipfile.ZipFile(tmp_path / "zipped.pt.zip", "w") as archive:
        archive.write(tmp_path / "data.pt", "data.pt")
    np.savez(tmp_path / "mine.npz", **arrays)
    expected = load(tmp_path / "mine.npz", directed=True, split=None)
    for name in ("pickled.npz", "parts.npz", "data.pt", "dataset.pt", "tensors.pt", "zipped.pt.zip"):
        found = load(tmp_path / name, directed=True, split=None)
        assert torch.equal(found.x.to_dense(), expected.x), name
        assert torch.equal(found.arc_index, expected.arc_index), name
        assert found.y.tolist() == expected.y.tolist(), name
        assert found.name == name.partition(".")[0]


def test_files_that_run_code_are_refused(tmp_path) -> None:
    class Evil:
        def __reduce__(self):
            return Path.touch, (tmp_path / "was here",)

    np.savez(tmp_path / "evil.npz", edges=np.array([Evil()], dtype=object), node_features=np.eye(2))
    torch.save({"x": Evil()}, tmp_path / "evil.pt")
    for name in ("evil.npz", "evil.pt"):
        with pytest.raises(InputError, match="can't be read as a graph"):
            load(tmp_path / name)
    assert not (tmp_path / "was here").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"name": "minesweeper", "split": "geom-gcn"},
            r"split\('geom-gcn'\) does not exist for minesweeper: use one of 'random', 'stored', or None",
        ),
        ({"name": "debian", "split": "weekly"}, r"split\('weekly'\) must be one of random, geom-gcn"),
        ({"name": "debian", "runs": 0}, r"runs\(0\) must be >= 1"),
        ({"name": 3}, r"name\(3\) must be one of .*, or the path of a graph file"),
        ({"name": "debian", "directed": "no"}, r"directed\('no'\) must be true or false"),
    ],
)
def test_bad_arguments(arguments, message) -> None:
    with pytest.raises(InputError, match=message):
        load(**arguments)


def test_only_graphs_loaded_by_name_are_benchmarks(arrays, tmp_path, data_root) -> None:
    for name in ("debian", "synthetic-h0.3", "texas"):
        for split in (None, "random"):
            data = load(name, split=split, root=data_root)
            assert data.benchmark == data.name == name
    np.savez(tmp_path / "cora.npz", **arrays)
    for data in (load(tmp_path / "cora.npz"), gcnsl.synthetic()):
        assert "benchmark" not in data
