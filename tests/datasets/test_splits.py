import numpy as np
import pytest
import torch

from gcnsl import load
from gcnsl.datasets.benchmarks import BENCHMARKS
from gcnsl.datasets.splits import random_masks
from gcnsl.graph.masks import MASKS

from .cases import GEOM_GCN

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


def test_random_splits_are_stratified_and_stable() -> None:
    y = torch.tensor([0] * 100 + [1] * 25 + [2] + [-1] * 10)
    masks = random_masks(y, runs=3, seed=7)
    assert [[int(masks[part][y == c, 0].sum()) for part in MASKS] for c in range(3)] == [
        [48, 32, 20],
        [12, 8, 5],
        [1, 0, 0],
    ]
    assert not any(mask[y == -1].any() for mask in masks.values())
    more = random_masks(y, runs=5, seed=7)
    assert more["train_mask"][:, :3].equal(masks["train_mask"])
    assert not more["train_mask"][:, 0].equal(more["train_mask"][:, 1])
    assert not random_masks(y, runs=1, seed=8)["train_mask"][:, 0].equal(masks["train_mask"][:, 0])
