import gzip
import shutil

import numpy as np
import pytest
import torch
from torch_geometric.datasets import WikipediaNetwork

import gcnsl
from gcnsl import InputError, load
from gcnsl.datasets import NAMES, is_known
from gcnsl.datasets.splits import PARTS, random_masks
from gcnsl.datasets.synthetic import synthetic_name
from gcnsl.graph import edge_homophily

# nodes, entries, repeated, loops, edges, features, classes, h: as the files' own documentation counts them.
COUNTS = {
    "cora": (2708, 10858, 302, 0, 5278, 1433, 7, 0.8100),
    "citeseer": (3327, 9464, 236, 124, 4676, 3703, 6, 0.7425),
    "pubmed": (19717, 88676, 25, 3, 44327, 500, 3, 0.8024),
    "chameleon": (2277, 36101, 0, 50, 31421, 2325, 5, 0.2312),
    "squirrel": (5201, 217073, 0, 140, 198493, 2089, 5, 0.2227),
    "cornell-geomgcn": (183, 298, 0, 3, 280, 1703, 5, 0.3036),
    "cornell": (183, 277, 0, 0, 277, 1703, 5, 0.1227),
    "texas": (183, 325, 0, 16, 295, 1703, 5, 0.1119),
    "wisconsin": (251, 515, 0, 16, 466, 1703, 5, 0.2060),
    "actor": (7600, 33391, 3372, 93, 26752, 932, 5, 0.2195),
}
TRAIN_VAL_TEST = {
    "cora": (1192, 796, 497),
    "pubmed": (9463, 6310, 3944),
    "cornell": (87, 59, 37),
    "texas": (87, 59, 37),
}


@pytest.mark.parametrize("name", COUNTS)
def test_counts_and_homophily(name, data_root) -> None:
    data = load(name, root=data_root, split=None)
    report = data.edge_report
    counts = (data.num_nodes, report.rows, report.repeated, report.loops, report.edges, data.num_features)
    assert (*counts, len(data.class_names)) == COUNTS[name][:-1]
    assert edge_homophily(data.edge_index, data.y) == pytest.approx(COUNTS[name][-1], abs=5e-5)
    assert data.is_undirected()
    assert data.is_coalesced()
    assert data.name == name


def paper_edges(name: str, data) -> int:
    """The paper's edge column mixes three ways of counting; each is reproduced here."""
    report = data.edge_report
    if name in ("cora", "citeseer", "pubmed"):
        return report.rows // 2
    if name in ("chameleon", "squirrel"):
        return report.edges
    return report.rows - report.repeated - report.loops


@pytest.mark.parametrize(
    ("name", "edges", "h"),
    [
        ("cora", 5429, 0.81),
        ("citeseer", 4732, 0.74),
        ("pubmed", 44338, 0.80),
        ("squirrel", 198493, 0.22),
        ("chameleon", 31421, 0.23),
        ("cornell-geomgcn", 295, 0.30),
        ("texas", 309, 0.11),
        ("wisconsin", 499, 0.21),
    ],
)
def test_the_papers_table(name, edges, h, data_root) -> None:
    data = load(name, root=data_root, split=None)
    assert paper_edges(name, data) == edges
    assert round(edge_homophily(data.edge_index, data.y), 2) == h


@pytest.mark.parametrize("name", COUNTS)
def test_geom_gcn_splits(name, data_root) -> None:
    data = load(name, root=data_root, split="geom-gcn")
    masks = torch.stack([data[part] for part in PARTS])
    assert masks.shape == (3, data.num_nodes, 10)
    assert masks.sum(dim=0).max() == 1, "disjoint"
    if name in TRAIN_VAL_TEST:
        assert tuple(masks[:, :, 0].sum(dim=1).tolist()) == TRAIN_VAL_TEST[name]
    covered = masks.any(dim=0).sum(dim=0)
    if name == "cora":
        assert covered.tolist() == [2485] * 10
    elif name == "citeseer":
        assert covered.tolist() == [3327] * 4 + [2120] * 2 + [3327] * 4
    else:
        assert covered.tolist() == [data.num_nodes] * 10


def test_public_split(data_root) -> None:
    for name, classes in (("cora", 7), ("citeseer", 6), ("pubmed", 3)):
        data = load(name, root=data_root, split="public")
        assert [int(data[part].sum()) for part in PARTS] == [20 * classes, 500, 1000]
        assert data.train_mask.shape == (data.num_nodes, 1)


def test_citeseer_nodes_without_anything_upstream(data_root) -> None:
    data = load("citeseer", root=data_root)
    empty = (data.x == 0).all(dim=1).nonzero().flatten().tolist()
    assert empty == [2407, 2489, 2553, 2682, 2781, 2953, 3042, 3063, 3212, 3214, 3250, 3292, 3305, 3306, 3309]
    assert data.y[empty].eq(0).all()
    assert any("15 nodes" in note for note in data.notes)


def test_the_two_cornells_differ(data_root) -> None:
    real, mixed, texas = (load(name, root=data_root) for name in ("cornell", "cornell-geomgcn", "texas"))
    assert mixed.x.equal(texas.x)
    assert mixed.y.equal(texas.y)
    assert not real.x.equal(mixed.x)
    assert torch.bincount(real.y).tolist() == [38, 16, 30, 82, 17]


@pytest.mark.parametrize("name", ["chameleon"])
def test_wikipedia_agrees_with_torch_geometric(name, data_root, tmp_path) -> None:
    raw = tmp_path / name / "geom_gcn" / "raw"
    raw.mkdir(parents=True)
    source = data_root / "geom-gcn" / name
    features = gzip.decompress((source / "out1_node_feature_label.txt.gz").read_bytes())
    (raw / "out1_node_feature_label.txt").write_bytes(features)
    shutil.copy(source / "out1_graph_edges.txt", raw)
    for path in (data_root / "splits").glob(f"{name}_*"):
        shutil.copy(path, raw)
    theirs = WikipediaNetwork(str(tmp_path), name)[0]
    ours = load(name, root=data_root, split="geom-gcn")
    assert ours.x.equal(theirs.x)
    assert ours.y.equal(theirs.y)
    assert ours.edge_index.equal(gcnsl.from_data(theirs).edge_index)
    for part in PARTS:
        assert ours[part].equal(theirs[part])


def test_random_splits_are_stratified_and_stable() -> None:
    y = torch.tensor([0] * 100 + [1] * 25 + [2] + [-1] * 10)
    masks = random_masks(y, runs=3, seed=7)
    assert [[int(masks[part][y == c, 0].sum()) for part in PARTS] for c in range(3)] == [
        [48, 32, 20],
        [12, 8, 5],
        [1, 0, 0],
    ]
    assert not any(mask[y == -1].any() for mask in masks.values())
    more = random_masks(y, runs=5, seed=7)
    assert more["train_mask"][:, :3].equal(masks["train_mask"])
    assert not more["train_mask"][:, 0].equal(more["train_mask"][:, 1])
    assert not random_masks(y, runs=1, seed=8)["train_mask"][:, 0].equal(masks["train_mask"][:, 0])


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


def test_npz_with_pickled_objects_is_refused(arrays, tmp_path) -> None:
    np.savez(tmp_path / "bad.npz", **{**arrays, "edges": np.array([object()])})
    with pytest.raises(InputError, match=r"bad\.npz can't be read as an npz file of plain arrays"):
        load(tmp_path / "bad.npz")


def test_bad_npz(arrays, tmp_path) -> None:
    (tmp_path / "text.npz").write_text("not a zip file")
    del arrays["edges"], arrays["val_masks"]
    np.savez(tmp_path / "part.npz", **arrays)
    with pytest.raises(InputError, match="can't be read as an npz file"):
        load(tmp_path / "text.npz")
    with pytest.raises(InputError, match=r"has no array 'edges', it has .*: add edges"):
        load(tmp_path / "part.npz")
    with pytest.raises(InputError, match="add edges, val_masks"):
        load(tmp_path / "part.npz", split="stored")
    with pytest.raises(InputError, match="there is no such file"):
        load(tmp_path / "absent.npz")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "corra"}, r"name\('corra'\) is no known graph: did you mean 'cora'\?"),
        ({"name": "zzz"}, "Known are cora, "),
        (
            {"name": "debian", "split": "geom-gcn"},
            r"split\('geom-gcn'\) does not exist for debian: use one of 'random'",
        ),
        ({"name": "texas", "split": "public"}, r"split\('public'\) does not exist for texas"),
        ({"name": "debian", "split": "weekly"}, r"split\('weekly'\) must be one of random, geom-gcn"),
        ({"name": "debian", "runs": 0}, r"runs\(0\) must be >= 1"),
        ({"name": "debian", "seed": -1}, r"seed\(-1\) must be >= 0"),
    ],
)
def test_bad_arguments(arguments, message) -> None:
    with pytest.raises(InputError, match=message):
        load(**arguments)


def test_every_named_graph_is_counted_here() -> None:
    assert set(COUNTS) | {"debian"} == set(NAMES)
