"""Which nodes are for training, validation and test: n × runs masks, one column a run."""

import io
from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gcnsl.errors import InputError
from gcnsl.graph import UNLABELLED

PARTS = ("train_mask", "val_mask", "test_mask")
SHARES = (0.48, 0.32, 0.20)
"""The paper's shares of training, validation and test nodes in each class; Geom-GCN's files have them too."""

GEOM_GCN_RUNS = 10

Masks = dict[str, Tensor]


def random_masks(y: Tensor, runs: int, seed: int) -> Masks:
    """Stratified random splits of all labelled nodes, 48/32/20 % of each class, from a seed.

    Run r depends on the seed and on r only: asking for more runs leaves the first ones as they were. A class always has
    at least one training node, however small it is.
    """
    if runs < 1:
        raise InputError(f"runs({runs}) must be >= 1")
    if seed < 0:
        raise InputError(f"seed({seed}) must be >= 0")
    masks = {part: torch.zeros(len(y), runs, dtype=torch.bool) for part in PARTS}
    classes = [np.flatnonzero(y.numpy() == c) for c in torch.unique(y).tolist() if c != UNLABELLED]
    for run in range(runs):
        generator = np.random.default_rng([seed, run])
        for nodes in classes:
            shuffled = generator.permutation(nodes)
            train = max(1, round(SHARES[0] * len(nodes)))
            val = min(round(SHARES[1] * len(nodes)), len(nodes) - train)
            for part, chosen in zip(PARTS, np.split(shuffled, [train, train + val]), strict=True):
                masks[part][chosen, run] = True
    return masks


def geom_gcn_paths(stem: str) -> list[str]:
    """The files of Geom-GCN's ten splits. Their names say 60/20 %; they hold 48/32/20 %."""
    return [f"splits/{stem}_split_0.6_0.2_{run}.npz" for run in range(GEOM_GCN_RUNS)]


def geom_gcn_masks(files: list[bytes]) -> Masks:
    """Masks from the contents of Geom-GCN's split files."""
    runs = [np.load(io.BytesIO(content), allow_pickle=False) for content in files]
    return {part: torch.from_numpy(np.stack([run[part].astype(bool) for run in runs], axis=1)) for part in PARTS}


def stored_masks(arrays: Mapping[str, NDArray[np.generic]]) -> dict[str, NDArray[np.generic]]:
    """Masks as the heterophilous format keeps them, ``train_masks`` and so on, runs × n."""
    return {part: arrays[f"{part}s"].T for part in PARTS}
