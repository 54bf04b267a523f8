import numpy as np
import pandas as pd
import pytest
import torch

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


def test_npz_with_pickled_objects_is_refused(arrays, tmp_path) -> None:
    np.savez(tmp_path / "bad.npz", **{**arrays, "edges": np.array([object()])})
    with pytest.raises(InputError, match=r"bad\.npz can't be read as an npz file"):
        load(tmp_path / "bad.npz")


def test_bad_npz(arrays, tmp_path) -> None:
    (tmp_path / "text.npz").write_text("not a zip file")
    del arrays["edges"], arrays["val_masks"]
    np.savez(tmp_path / "part.npz", **arrays)
    with pytest.raises(InputError, match="can't be read as an npz file"):
        load(tmp_path / "text.npz")
    with pytest.raises(InputError, match=r"has no array 'edges', only .*: add edges"):
        load(tmp_path / "part.npz")
    with pytest.raises(InputError, match="add edges, val_masks"):
        load(tmp_path / "part.npz", split="stored")
    with pytest.raises(InputError, match="does not exist"):
        load(tmp_path / "absent.npz")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "corra"}, r"name\('corra'\) is not a known graph; .*; did you mean cora\?$"),
        ({"name": "zzz"}, "is not a known graph; known are cora, "),
        (
            {"name": "debian", "split": "geom-gcn"},
            r"split\('geom-gcn'\) does not exist for debian: use one of 'random'",
        ),
        ({"name": "texas", "split": "public"}, r"split\('public'\) does not exist for texas"),
        ({"name": "cora", "split": "stored"}, r"split\('stored'\) does not exist for cora"),
        (
            {"name": "minesweeper", "split": "geom-gcn"},
            r"split\('geom-gcn'\) does not exist for minesweeper: use one of 'random', 'stored', or None",
        ),
        ({"name": "corra", "directed": True}, "did you mean cora"),
        ({"name": "debian", "split": "weekly"}, r"split\('weekly'\) must be one of random, geom-gcn"),
        ({"name": "debian", "runs": 0}, r"runs\(0\) must be >= 1"),
        ({"name": 3}, r"name\(3\) must be one of .*, or the path of an npz file"),
        ({"name": "debian", "directed": "no"}, r"directed\('no'\) must be true or false"),
        ({"name": "debian", "runs": 10**40}, r"runs\(10+\) must be from 1 to 2147483647"),
        ({"name": "debian", "seed": -1}, r"seed\(-1\) must be from 0 to 4294967295"),
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
    by_path = load(tmp_path / "cora.npz")
    assert by_path.name == "cora"
    nodes = pd.DataFrame({"id": [0, 1], "f": [0.0, 1.0]})
    tables = gcnsl.from_tables(nodes, pd.DataFrame({"source": [0], "target": [1]}))
    for data in (by_path, load(str(tmp_path / "cora.npz"), split="stored"), gcnsl.synthetic(), tables):
        assert "benchmark" not in data


def test_a_flipped_byte_is_noticed(tmp_path) -> None:
    path = tmp_path / "damaged.npz"
    np.savez_compressed(path, node_features=np.zeros((50, 50)), node_labels=np.arange(50) % 2, edges=np.zeros((9, 2)))
    content = bytearray(path.read_bytes())
    content[80] ^= 255
    path.write_bytes(content)
    with pytest.raises(InputError, match="can't be read as an npz file"):
        load(path, split=None)
