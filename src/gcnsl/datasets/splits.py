"""Splits of the nodes into training, validation and test nodes: masks with one column per run."""

import io
import warnings
from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold
from torch import Tensor

from gcnsl.checks import UNLABELLED, check_seed, check_whole
from gcnsl.errors import InputError
from gcnsl.graph.masks import MASKS, draw_validation

SHARES = (0.48, 0.32, 0.20)
"""Shares of training, validation and test nodes per class, in the paper and in Geom-GCN's files."""

Masks = dict[str, Tensor]


def random_masks(y: Tensor, runs: int, seed: int) -> Masks:
    """Draw stratified random splits of the labelled nodes: 48/32/20 % of each class, and at least one training node.

    Run r depends on nothing but the seed and r, so that the first runs stay the same if there are more of them.
    """
    runs, seed = check_whole("runs", runs, least=1), check_seed(seed)
    masks = {name: torch.zeros(len(y), runs, dtype=torch.bool) for name in MASKS}
    classes = [np.flatnonzero(y.numpy() == c) for c in torch.unique(y).tolist() if c != UNLABELLED]
    for run in range(runs):
        generator = np.random.default_rng([seed, run])
        for nodes in classes:
            shuffled = generator.permutation(nodes)
            train = max(1, round(SHARES[0] * len(nodes)))
            val = min(round(SHARES[1] * len(nodes)), len(nodes) - train)
            for name, chosen in zip(MASKS, np.split(shuffled, [train, train + val]), strict=True):
                masks[name][chosen, run] = True
    return masks


def draw_folds(y: Tensor, count: int, seed: int) -> NDArray[np.int64]:
    """Draw stratified folds of the labelled nodes: the number of each node's fold (n), -1 for an unlabelled one."""
    labelled = np.flatnonzero(y.numpy() != UNLABELLED)
    most = int(torch.bincount(y[labelled]).max()) if len(labelled) else 0
    if most < 2:
        raise InputError("no class has two labelled nodes: cross-validation needs one in each fold")
    check_whole("folds", count, least=2, most=most, why="every fold needs a node of the most frequent class")
    folds = np.full(len(y), UNLABELLED)
    generator = StratifiedKFold(count, shuffle=True, random_state=check_seed(seed))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a class with fewer nodes than folds is in some of them only
        for number, (_, chosen) in enumerate(generator.split(labelled, y[labelled])):
            folds[labelled[chosen]] = number
    return folds


def fold_masks(y: Tensor, folds: NDArray[np.int64], seed: int) -> Masks:
    """Masks for cross-validation: each fold has the test nodes of one run, and the other nodes are for training.

    Nodes without a fold (a negative number) are in all training sets. Validation nodes are drawn.
    """
    if folds.shape != y.shape or folds.dtype.kind not in "iu":
        raise InputError(f"folds has shape {folds.shape} and dtype {folds.dtype}: give a whole number for each node")
    labelled = y.numpy() != UNLABELLED
    numbers = np.unique(folds[(folds >= 0) & labelled])
    if len(numbers) < 2:
        raise InputError(f"folds has {len(numbers)} different number(s) at labelled nodes: cross-validation needs two")
    test = torch.from_numpy(labelled[:, None] & (folds[:, None] == numbers))
    return with_validation({"train_mask": torch.from_numpy(labelled)[:, None] & ~test, "test_mask": test}, y, seed)


def with_validation(masks: Mapping[str, Tensor], y: Tensor, seed: int) -> Masks:
    """The masks (n × runs), with 40 % of each class's training nodes for validation in runs that have none yet.

    The share is that of random splits, without their test nodes.
    """
    train = masks["train_mask"].clone()
    val = masks.get("val_mask", torch.zeros_like(train)).clone()
    for run in (~val.any(dim=0)).nonzero().flatten().tolist():
        known = np.where(train[:, run].numpy(), y.numpy(), UNLABELLED)
        chosen = draw_validation(known, SHARES[1] / (SHARES[0] + SHARES[1]), seed=seed + run)
        val[:, run] = torch.from_numpy(chosen)
        train[:, run] &= ~val[:, run]
    return {**masks, "train_mask": train, "val_mask": val}


def geom_gcn_masks(files: list[bytes]) -> Masks:
    """Read masks from the contents of Geom-GCN's split files."""
    runs = [np.load(io.BytesIO(content), allow_pickle=False) for content in files]
    return {name: torch.from_numpy(np.stack([run[name].astype(bool) for run in runs], axis=1)) for name in MASKS}
