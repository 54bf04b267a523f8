import numpy as np
import pytest
import torch
from torch_geometric.utils import coalesce

from gcnsl import load
from gcnsl.datasets.benchmarks import BENCHMARKS
from gcnsl.graph import edge_homophily
from gcnsl.graph.masks import MASKS

from .cases import COUNTS, DIRECTED, GEOM_GCN

PAPER = {
    "cora": (5429, 0.81),
    "citeseer": (4732, 0.74),
    "pubmed": (44338, 0.80),
    "squirrel": (198493, 0.22),
    "chameleon": (31421, 0.23),
    "cornell-geomgcn": (295, 0.30),
    "texas": (309, 0.11),
    "wisconsin": (499, 0.21),
}


def paper_edges(name: str, report) -> int:
    """The paper's edge column mixes three ways of counting; each is reproduced here."""
    if name in ("cora", "citeseer", "pubmed"):
        return report.rows // 2
    if name in ("chameleon", "squirrel"):
        return report.edges
    return report.rows - report.repeated - report.loops


@pytest.mark.parametrize("name", COUNTS)
def test_counts_and_homophily_of_the_files_and_the_paper(name, data_root) -> None:
    data = load(name, root=data_root, split=None)
    report, h = data.edge_report, edge_homophily(data.edge_index, data.y, loops=True)
    counts = (data.num_nodes, report.rows, report.repeated, report.loops, report.edges, data.num_features)
    assert (*counts, len(data.class_names)) == COUNTS[name][:-1]
    assert h == pytest.approx(COUNTS[name][-1], abs=5e-5)
    assert data.is_undirected()
    assert data.is_coalesced()
    if name in PAPER:
        assert (paper_edges(name, report), round(h, 2)) == PAPER[name]


@pytest.mark.parametrize("name", DIRECTED)
def test_directions(name, data_root) -> None:
    plain, data = (load(name, root=data_root, split=None, directed=directed) for directed in (False, True))
    _, entries, repeated, *_ = COUNTS[name]
    assert "arc_index" not in plain
    assert data.arc_index.shape == (2, entries - repeated)
    assert data.edge_index.equal(plain.edge_index)
    both = torch.cat([data.arc_index, data.arc_index.flip(0)], dim=1)
    assert coalesce(both).equal(data.edge_index)


def test_public_split(data_root) -> None:
    for name, classes in (("cora", 7), ("citeseer", 6), ("pubmed", 3)):
        data = load(name, root=data_root, split="public")
        assert [int(data[part].sum()) for part in MASKS] == [20 * classes, 500, 1000]
        assert data.train_mask.shape == (data.num_nodes,)


TRAIN_VAL_TEST = {
    "cora": (1192, 796, 497),
    "pubmed": (9463, 6310, 3944),
    "cornell": (87, 59, 37),
    "texas": (87, 59, 37),
}


@pytest.mark.parametrize("name", GEOM_GCN)
def test_geom_gcn_splits(name, data_root) -> None:
    data = load(name, root=data_root, split="geom-gcn")
    masks = torch.stack([data[part] for part in MASKS])
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


@pytest.mark.parametrize("name", ["minesweeper", "chameleon-filtered", "squirrel-filtered"])
def test_stored_splits(name, data_root) -> None:
    data = load(name, root=data_root, split="stored")
    (path,) = BENCHMARKS[name].paths
    file = np.load(data_root / path)
    for part in MASKS:
        assert data[part].shape == (data.num_nodes, 10)
        np.testing.assert_array_equal(data[part].T, file[f"{part}s"])
    assert (torch.stack([data[part] for part in MASKS]).sum(dim=0) == 1).all()
