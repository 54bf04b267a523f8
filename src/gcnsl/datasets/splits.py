"""Splits of the nodes into training, validation and test nodes: masks with one column per run."""

import io

import numpy as np
import torch
from torch import Tensor

from gcnsl.checks import UNLABELLED, check_whole
from gcnsl.graph.masks import MASKS

SHARES = (0.48, 0.32, 0.20)
"""Shares of training, validation and test nodes per class, in the paper and in Geom-GCN's files."""

GEOM_GCN_RUNS = 10

Masks = dict[str, Tensor]


def random_masks(y: Tensor, runs: int, seed: int) -> Masks:
    """Draw stratified random splits of the labelled nodes: 48/32/20 % of each class, and at least one training node.

    Run r depends on nothing but the seed and r, so that the first runs stay the same if there are more of them.
    """
    runs, seed = check_whole("runs", runs, least=1), check_whole("seed", seed)
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


def geom_gcn_paths(stem: str) -> list[str]:
    """Return the paths of Geom-GCN's ten splits. They are 48/32/20 % splits, in spite of the numbers in their names."""
    return [f"splits/{stem}_split_0.6_0.2_{run}.npz" for run in range(GEOM_GCN_RUNS)]


def geom_gcn_masks(files: list[bytes]) -> Masks:
    """Read masks from the contents of Geom-GCN's split files."""
    runs = [np.load(io.BytesIO(content), allow_pickle=False) for content in files]
    return {name: torch.from_numpy(np.stack([run[name].astype(bool) for run in runs], axis=1)) for name in MASKS}
