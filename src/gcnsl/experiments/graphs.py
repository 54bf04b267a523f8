"""The graphs that experiments run on, by name: those of :func:`gcnsl.load`, and synthetic ones of any homophily."""

import os

from torch_geometric.data import Data

from gcnsl.datasets import NAMES, load, synthetic, with_random_split
from gcnsl.datasets.benchmarks import BENCHMARKS
from gcnsl.errors import InputError

_SYNTHETIC = "synthetic-h"


def synthetic_name(h: float) -> str:
    """The name of the synthetic graph with homophily h."""
    return f"{_SYNTHETIC}{h:g}"


def synthetic_homophily(name: str) -> float | None:
    """The homophily of the synthetic graph of this name; ``None`` for other graphs."""
    try:
        return float(name.removeprefix(_SYNTHETIC)) if name.startswith(_SYNTHETIC) else None
    except ValueError:
        return None


def check_graph(name: str, split: str | None = None) -> None:
    """Refuse a graph that there is not, or a split that it has not, before any work is done."""
    if name not in NAMES and synthetic_homophily(name) is None:
        raise InputError(f"dataset({name!r}) must be one of {', '.join(NAMES)}, or {_SYNTHETIC}H with H from 0 to 1")
    if split not in (None, *splits_of(name)):
        raise InputError(f"split({split!r}) does not exist for {name}: use {' or '.join(splits_of(name))}")


def splits_of(name: str) -> tuple[str, ...]:
    """The kinds of split that a graph has."""
    return ("random", "geom-gcn") if name in BENCHMARKS else ("random",)


def load_graph(name: str, *, split: str, runs: int, seed: int, root: str | os.PathLike[str] | None = None) -> Data:
    """A graph with its masks.

    Args:
        name: One of :data:`gcnsl.datasets.NAMES`, or ``"synthetic-h0.3"`` for :func:`gcnsl.synthetic` with h = 0.3.
        split: ``"random"`` or ``"geom-gcn"``; ``"none"`` for no masks.
        runs: Random splits to draw.
        seed: Of random splits, and of a synthetic graph.
        root: Folder with dataset files, searched first.
    """
    h = synthetic_homophily(name)
    if h is not None:
        return with_random_split(synthetic(h=h, seed=seed), runs=runs, seed=seed)
    return load(name, split=None if split == "none" else split, runs=runs, seed=seed, root=root)
