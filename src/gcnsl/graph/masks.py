"""Training, validation and test nodes: boolean masks (n), with one column per run if there are several (n × runs).

They are checked if they are given, and else drawn: at random, or as the folds of cross-validation.
"""

import warnings
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from gcnsl.checks import UNLABELLED, as_array, check_number, check_seed, check_whole
from gcnsl.errors import ArgumentError, InputError

PARTS = ("train", "val", "test")
MASKS = tuple(f"{part}_mask" for part in PARTS)
SHARES = (0.48, 0.32, 0.20)
"""Shares of training, validation and test nodes per class, in the paper and in Geom-GCN's files."""

Masks = dict[str, Tensor]


class GraphWarning(UserWarning):
    """The graph can be used, but something in it will probably lead to poor results."""


def check_masks(
    masks: Mapping[str, Any], y: Tensor | None, num_nodes: int, class_names: Sequence[Any] = ()
) -> dict[str, Tensor]:
    """Check the masks (n or n × runs; ``None`` for a missing one); convert them to bool (n for one run, else n × runs).

    Masks must not overlap and must select labelled nodes only, and every run needs training nodes. A class without
    training nodes causes a :class:`GraphWarning`.
    """
    given = {name: _as_mask(mask, name, num_nodes) for name, mask in masks.items() if mask is not None}
    if not given:
        return {}
    if y is None:
        raise InputError(f"{next(iter(given))} is given without y: masks select labelled nodes; give y too")
    shapes = {name: tuple(mask.shape) for name, mask in given.items()}
    if len(set(shapes.values())) > 1:
        raise InputError(f"masks have different numbers of runs: {shapes}; give all masks the same shape")
    for name, mask in given.items():
        unlabelled = (mask & (y == UNLABELLED)[:, None]).nonzero().tolist()
        if unlabelled:
            node, run = unlabelled[0]
            place = f"{node}, {run}" if mask.shape[1] > 1 else node
            raise InputError(f"{name}[{place}] selects a node without a label; unset it or give the label")
    overlaps = (torch.stack(list(given.values())).sum(dim=0) > 1).nonzero().tolist()
    if overlaps:
        node, run = overlaps[0]
        both = " and ".join(name for name, mask in given.items() if mask[node, run])
        raise InputError(f"node {node} is in {both} of run {run}: masks must not overlap; unset all but one")
    train = given.get("train_mask")
    if train is not None:
        empty = (~train.any(dim=0)).nonzero()
        if len(empty):
            raise InputError(f"train_mask selects no node in run {int(empty[0])}: select at least one training node")
        for sentence in untrained_classes(train, y, class_names):
            warnings.warn(sentence, GraphWarning, stacklevel=3)
    return as_users_know(given)


def by_run(mask: Tensor) -> Tensor:
    """A mask (n or n × runs) with a column for each run."""
    return mask.reshape(len(mask), -1)


def as_users_know(masks: Masks) -> Masks:
    """Masks as those of PyTorch Geometric are: n for a single run."""
    return {name: by_run(mask)[:, 0] if by_run(mask).shape[1] == 1 else mask for name, mask in masks.items()}


def untrained_classes(train: Tensor, y: Tensor, class_names: Sequence[Any] = ()) -> list[str]:
    """Return one sentence per class that has labelled nodes but, in some run, no training node."""
    sentences, train = [], by_run(train)
    for c in torch.unique(y[y != UNLABELLED]).tolist():
        absent = (~train[y == c].any(dim=0)).nonzero().flatten().tolist()
        if absent:
            name = repr(class_names[c]) if c < len(class_names) else str(c)
            runs = "any run" if 1 < len(absent) == train.shape[1] else f"run {', '.join(map(str, absent))}"
            sentences.append(f"class {name} has no training node in {runs}: it can't be learnt")
    return sentences


def _as_mask(mask: Any, name: str, num_nodes: int) -> Tensor:
    values = as_array(mask, name)
    if values.ndim not in (1, 2) or values.shape[0] != num_nodes or values.size == 0:
        rows = f"give {num_nodes} rows, one per node, and one column per run"
        raise InputError(f"{name} has shape {values.shape}: {rows}")
    if values.dtype.kind not in "biu" or (values.dtype.kind != "b" and not np.isin(values, (0, 1)).all()):
        raise InputError(f"{name} has dtype {values.dtype} or values other than 0 and 1: give a boolean mask")
    return torch.from_numpy(np.array(values.reshape(num_nodes, -1), dtype=bool, order="C"))


def split_count(data: Data) -> int:
    """Return the number of runs that a graph has masks for, 0 without masks."""
    masks = [data[name] for name in MASKS if data.get(name) is not None]
    return by_run(masks[0]).shape[1] if masks else 0


def split_masks(data: Data, run: int, *, need: Collection[str] = PARTS) -> dict[str, Tensor]:
    """Return the masks (n each) of one run by part; those in ``need`` must have nodes, and others may be missing."""
    count = split_count(data)
    if count:
        check_whole("run", run, most=count - 1, why=f"the graph has {count} split(s)")
    given = {part: data.get(f"{part}_mask") for part in PARTS}
    none = torch.zeros(data.num_nodes, dtype=torch.bool)
    masks = {part: none if mask is None else by_run(mask)[:, run] for part, mask in given.items()}
    for part in PARTS:
        if part in need and not masks[part].any():
            raise InputError(f"the graph has no {part} nodes in run {run}: add some to {part}_mask")
    return masks


def draw_validation(numbers: NDArray[np.int64], fraction: float, *, seed: int) -> NDArray[np.bool_]:
    """Draw a share of each class's nodes for validation (n), leaving at least one; -1 in the class numbers is none."""
    check_number("validation_fraction", fraction, above=0, below=1, why="it is a share of the labelled nodes")
    generator = np.random.default_rng(seed)
    chosen = np.zeros(len(numbers), dtype=bool)
    for c in range(int(numbers.max()) + 1):
        nodes = generator.permutation(np.flatnonzero(numbers == c))
        chosen[nodes[: min(round(fraction * len(nodes)), len(nodes) - 1)]] = True
    if not chosen.any():
        labelled = int((numbers != UNLABELLED).sum())
        rule = f"of {labelled} labelled nodes leaves none for validation: give more labels, a larger share, or val_mask"
        raise ArgumentError("validation_fraction", fraction, rule)
    return chosen


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
    return as_users_know(masks)


def draw_folds(y: Tensor, count: int, seed: int) -> NDArray[np.int64]:
    """Draw stratified folds of the labelled nodes: the number of each node's fold (n), -1 for an unlabelled one."""
    from sklearn.model_selection import StratifiedKFold  # it takes long to load

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
    """Masks for cross-validation: each fold is tested in one run; nodes without one (-1) are always trained on.

    Validation nodes are drawn.
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
    """The masks, with 40 % of each class's training nodes for validation in runs that have none yet."""
    train = by_run(masks["train_mask"]).clone()
    val = by_run(masks.get("val_mask", torch.zeros_like(train))).clone()
    for run in (~val.any(dim=0)).nonzero().flatten().tolist():
        known = np.where(train[:, run].numpy(), y.numpy(), UNLABELLED)
        chosen = draw_validation(known, SHARES[1] / (SHARES[0] + SHARES[1]), seed=seed + run)
        val[:, run] = torch.from_numpy(chosen)
        train[:, run] &= ~val[:, run]
    return as_users_know({**masks, "train_mask": train, "val_mask": val})
