import numpy as np
import pytest
import torch

from gcnsl import InputError, from_arrays
from gcnsl.graph import GraphWarning, draw_validation, split_count, split_masks

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
        ({"train_mask": [1, 1, 0, 1]}, r"train_mask\[3, 0\] selects a node without a label"),
        ({"train_mask": [0, 0, 0, 0]}, "train_mask selects no node in run 0"),
        ({"y": None, "train_mask": [1, 1, 0, 0]}, "train_mask is given without y"),
    ],
)
def test_bad_masks_are_named(arguments, message) -> None:
    with pytest.raises(InputError, match=message):
        from_arrays(**{"x": X, "edge_index": EDGES, "y": Y, **arguments})


def test_a_class_that_no_run_trains_on() -> None:
    with pytest.warns(GraphWarning, match="class 1 has no training node in any run"):
        from_arrays(X, EDGES, Y, train_mask=[[1, 1], [0, 0], [0, 0], [0, 0]])


@pytest.fixture
def data():
    """Two runs, the second without test nodes."""
    masks = {"train_mask": [[1, 0], [0, 1], [0, 0], [0, 0]], "test_mask": [[0, 0], [1, 0], [0, 0], [0, 0]]}
    with pytest.warns(GraphWarning):
        return from_arrays(X, EDGES, Y, val_mask=[[0, 0], [0, 0], [1, 1], [0, 0]], **masks)


def test_the_masks_of_a_run(data) -> None:
    masks = split_masks(data, 0)
    assert {part: mask.nonzero().flatten().tolist() for part, mask in masks.items()} == {
        "train": [0],
        "val": [2],
        "test": [1],
    }
    data.update({f"{part}_mask": mask for part, mask in masks.items()})
    assert split_count(data) == 1
    assert all(mask.equal(masks[part]) for part, mask in split_masks(data, 0).items()), "masks of one dimension"


def test_the_number_of_splits(data) -> None:
    assert split_count(data) == 2
    assert split_count(from_arrays(X, EDGES, Y)) == 0
    assert split_count(from_arrays(X, EDGES, Y, test_mask=np.ones((4, 3), dtype=bool) & [[1], [1], [1], [0]])) == 3


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


@pytest.mark.parametrize("run", [-1, 2])
def test_a_run_that_does_not_exist(data, run) -> None:
    with pytest.raises(InputError, match=rf"run\({run}\) must be from 0 to 1: the graph has 2 split"):
        split_masks(data, run)


def test_validation_nodes_are_a_share_of_each_class() -> None:
    numbers = np.array([0] * 40 + [1] * 20 + [2] + [-1] * 9)
    chosen = draw_validation(numbers, 0.25, seed=0)
    assert [int(chosen[numbers == c].sum()) for c in (0, 1, 2, -1)] == [10, 5, 0, 0]
    assert (chosen == draw_validation(numbers, 0.25, seed=0)).all()
    assert (chosen != draw_validation(numbers, 0.25, seed=1)).any()
    assert draw_validation(numbers, 0.99, seed=0)[:60].sum() == 39 + 19, "a class keeps a training node"


def test_bad_shares_of_validation_nodes() -> None:
    numbers = np.array([0, 1, 2, -1])
    for fraction in (0.0, 1.0, float("nan"), "half"):
        with pytest.raises(InputError, match=r"validation_fraction\(.*\) must be"):
            draw_validation(numbers, fraction, seed=0)
    with pytest.raises(InputError, match=r"validation_fraction\(0.4\) of 3 labelled nodes leaves none for validation"):
        draw_validation(numbers, 0.4, seed=0)


def test_masks_that_cannot_be_written_to_are_copied() -> None:
    mask = np.array([True, True, False, False])
    mask.setflags(write=False)
    assert from_arrays(X, EDGES, Y, train_mask=mask).train_mask[:, 0].tolist() == mask.tolist()
