import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data

from gcnsl import InputError, from_arrays
from gcnsl.datasets import with_folds
from gcnsl.graph import GraphWarning, draw_validation, split_masks
from gcnsl.graph.masks import MASKS, draw_folds, fold_masks, random_masks, with_validation

from .cases import EDGES, X, Y


def test_untrained_class_warns() -> None:
    with pytest.warns(GraphWarning, match="class 1 has no training node in run 0: it can't be learnt"):
        from_arrays(X, EDGES, Y, train_mask=[1, 0, 0, 0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"train_mask": [1, 1, 0]}, r"train_mask has shape \(3,\): give 4 rows"),
        ({"train_mask": [1, 2, 0, 0]}, "boolean mask"),
        ({"train_mask": [1, 1, 0, 0], "val_mask": np.ones((4, 2), dtype=bool)}, "different numbers of runs"),
        ({"train_mask": [1, 1, 0, 0], "test_mask": [0, 1, 0, 0]}, "node 1 is in train_mask and test_mask of run 0"),
        ({"train_mask": [1, 1, 0, 1]}, r"train_mask\[3\] selects a node without a label"),
        ({"train_mask": [0, 0, 0, 0]}, "train_mask selects no node in run 0"),
        ({"y": None, "train_mask": [1, 1, 0, 0]}, "train_mask is given without y"),
    ],
)
def test_bad_masks_are_named(arguments, message) -> None:
    with pytest.raises(InputError, match=message):
        from_arrays(**{"x": X, "edge_index": EDGES, "y": Y, **arguments})


@pytest.fixture
def data():
    """Two runs, the second without test nodes."""
    masks = {"train_mask": [[1, 0], [0, 1], [0, 0], [0, 0]], "test_mask": [[0, 0], [1, 0], [0, 0], [0, 0]]}
    with pytest.warns(GraphWarning):
        return from_arrays(X, EDGES, Y, val_mask=[[0, 0], [0, 0], [1, 1], [0, 0]], **masks)


def test_a_part_that_is_not_needed_may_be_missing(data) -> None:
    with pytest.raises(InputError, match="the graph has no test nodes in run 1: add some to test_mask"):
        split_masks(data, 1)
    masks = split_masks(data, 1, need=("train", "val"))
    assert not masks["test"].any()
    assert masks["train"].tolist() == [False, True, False, False]
    del data.val_mask
    masks = split_masks(data, 0, need=("train",))
    assert masks["val"].equal(torch.zeros(4, dtype=torch.bool))
    with pytest.raises(InputError, match="no train nodes in run 0"):
        split_masks(from_arrays(X, EDGES, Y), 0)


def test_validation_nodes_are_a_share_of_each_class() -> None:
    numbers = np.array([0] * 40 + [1] * 20 + [2] + [-1] * 9)
    chosen = draw_validation(numbers, 0.25, seed=0)
    assert [int(chosen[numbers == c].sum()) for c in (0, 1, 2, -1)] == [10, 5, 0, 0]
    assert (chosen == draw_validation(numbers, 0.25, seed=0)).all()
    assert (chosen != draw_validation(numbers, 0.25, seed=1)).any()
    assert draw_validation(numbers, 0.99, seed=0)[:60].sum() == 39 + 19, "a class keeps a training node"


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
    assert not random_masks(y, runs=1, seed=8)["train_mask"].equal(masks["train_mask"][:, 0])


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
