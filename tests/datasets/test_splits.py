import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data

from gcnsl import InputError, from_arrays, load
from gcnsl.datasets import with_folds, with_random_split
from gcnsl.datasets.benchmarks import BENCHMARKS
from gcnsl.datasets.splits import draw_folds, fold_masks, random_masks, with_validation
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


@given(st.lists(st.integers(-1, 3), min_size=12, max_size=60), st.integers(2, 4), st.integers(0, 99))
def test_every_labelled_node_is_tested_once_in_cross_validation(labels, count, seed) -> None:
    y = torch.tensor([0, 1, 0, 1, 0, 1, 0, 1, *labels])
    folds = draw_folds(y, count, seed)
    assert ((folds >= 0) == (y.numpy() >= 0)).all()
    for c in range(4):
        sizes = np.bincount(folds[(y == c).numpy()], minlength=count)
        assert sizes.max() - sizes.min() <= 1, "each class is spread evenly"
    masks = fold_masks(y, folds, seed)
    assert masks["test_mask"].sum(dim=1).tolist() == (y >= 0).long().tolist()
    assert torch.stack(list(masks.values())).sum(dim=0).equal((y >= 0).long()[:, None].expand(-1, count))
    assert masks["val_mask"].any(dim=0).all()
    for c in range(4):
        assert (
            masks["train_mask"][y == c].any(dim=0)[(masks["train_mask"] | masks["val_mask"])[y == c].any(dim=0)].all()
        )


def test_given_folds_are_tested_in_their_order_and_nodes_without_one_never() -> None:
    y = torch.tensor([0, 1] * 6 + [-1])
    folds = np.array([7, 7, 3, 3, 9, 9, -1, -1, -1, -1, -1, -1, 3])
    masks = fold_masks(y, folds, seed=0)
    assert [masks["test_mask"][:, run].nonzero().flatten().tolist() for run in range(3)] == [[2, 3], [0, 1], [4, 5]]
    data = with_folds(Data(y=y), folds)
    assert data.val_mask.equal(masks["val_mask"])
    assert with_folds(data, np.int64(3), seed=1).test_mask.shape == (13, 3)


@pytest.mark.parametrize(
    ("folds", "message"),
    [
        (1, r"folds\(1\) must be from 2 to 6"),
        (7, r"folds\(7\) must be from 2 to 6: every fold needs a node of the most frequent class"),
        (np.zeros(12, dtype=int), "folds has 1 different number"),
        (np.zeros(12), r"folds has shape \(12,\) and dtype float64: give a whole number for each node"),
        (np.array([0, 1]), r"folds has shape \(2,\)"),
    ],
)
def test_folds_that_can_not_be(folds, message) -> None:
    with pytest.raises(InputError, match=message):
        with_folds(Data(y=torch.tensor([0, 1] * 6)), folds)


def test_validation_nodes_are_drawn_only_where_there_are_none() -> None:
    y = torch.tensor([0, 1] * 10)
    train, val = torch.zeros(20, 2, dtype=torch.bool), torch.zeros(20, 2, dtype=torch.bool)
    train[:10] = True
    val[10:12, 1] = True
    masks = with_validation({"train_mask": train, "val_mask": val}, y, seed=0)
    assert masks["val_mask"][:, 1].equal(val[:, 1])
    assert masks["train_mask"][:, 1].equal(train[:, 1])
    assert (masks["train_mask"] | masks["val_mask"])[:, 0].equal(train[:, 0])
    assert [int(masks["val_mask"][y == c, 0].sum()) for c in (0, 1)] == [2, 2], "40 % of each class"


def test_folds_need_two_nodes_of_a_class() -> None:
    with pytest.raises(InputError, match="no class has two labelled nodes"):
        draw_folds(torch.tensor([0, 1, -1]), 2, 0)


@pytest.mark.parametrize("y", [None, [-1, -1]])
@pytest.mark.parametrize("split", [with_random_split, lambda data: with_folds(data, 2)])
def test_a_graph_without_labels_can_not_be_split(y, split) -> None:
    with pytest.raises(InputError, match="the graph has no labels to split"):
        split(from_arrays(np.eye(2), np.array([[0], [1]]), y))
