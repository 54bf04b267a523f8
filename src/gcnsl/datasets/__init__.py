"""Graphs by name: the literature's, the bundled one, synthetic ones, and any npz file in the heterophilous format."""

import copy
import difflib
import os
from pathlib import Path
from typing import Any

from torch_geometric.data import Data

from gcnsl.datasets.benchmarks import BENCHMARKS, read_benchmark, read_npz
from gcnsl.datasets.debian import load_debian
from gcnsl.datasets.files import fetch, folder_of
from gcnsl.datasets.splits import geom_gcn_masks, geom_gcn_paths, random_masks, stored_masks
from gcnsl.datasets.synthetic import NAMED_SEED, synthetic, synthetic_homophily
from gcnsl.errors import InputError
from gcnsl.graph import from_arrays

__all__ = ["NAMES", "SPLITS", "is_known", "load", "synthetic", "where", "with_random_split"]

NAMES = (*BENCHMARKS, "debian")
"""The real graphs that :func:`load` knows by name."""

SPLITS = ("random", "geom-gcn", "public", "stored")


def load(
    name: str | os.PathLike[str],
    *,
    split: str | None = "random",
    runs: int = 10,
    seed: int = 0,
    root: str | os.PathLike[str] | None = None,
) -> Data:
    """Load a graph.

    Args:
        name: One of :data:`NAMES`; ``"synthetic-h0.3"`` for :func:`synthetic` with h = 0.3 (or any other); or the path
            of an npz file in the heterophilous format.
        split: ``"random"``: 48/32/20 % of each class, ``runs`` times, from ``seed``; any graph.
            ``"geom-gcn"``: the ten published splits; the literature's graphs.
            ``"public"``: the standard split of the citation graphs (20 training nodes a class; one run).
            ``"stored"``: the masks that an npz file holds.
            ``None``: no masks.
        runs: Number of random splits.
        seed: Of the random splits.
        root: Folder with dataset files, searched before ``$GCNSL_DATA`` and the user's cache; what is found nowhere is
            downloaded.

    Returns:
        The checked graph (:func:`gcnsl.graph.from_arrays` says what is in it) with masks n × runs, its ``name``, and
        ``notes``: what one should know about it.
    """
    if split is not None and split not in SPLITS:
        raise InputError(f"split({split!r}) must be one of {', '.join(SPLITS)}, or None")
    if Path(name).suffix == ".npz":
        data = _load_npz(Path(name), split)
    elif name == "debian":
        _refuse_split("debian", split, "geom-gcn", "public", "stored")
        data = load_debian()
    elif (h := synthetic_homophily(str(name))) is not None:
        _refuse_split(str(name), split, "geom-gcn", "public", "stored")
        data = synthetic(h=h, seed=NAMED_SEED)
        data.name = str(name)
    else:
        data = _load_benchmark(str(name), split, root)
    return with_random_split(data, runs=runs, seed=seed) if split == "random" else data


def is_known(name: str) -> bool:
    """Whether :func:`load` knows a graph by this name, files aside."""
    return name in NAMES or synthetic_homophily(name) is not None


def with_random_split(data: Data, *, runs: int = 10, seed: int = 0) -> Data:
    """The graph with random masks: 48/32/20 % of each class, ``runs`` times, from a seed."""
    data = copy.copy(data)
    data.update(random_masks(data.y, runs, seed))
    return data


def where(name: str, root: str | os.PathLike[str] | None = None) -> str | None:
    """The folder of this machine that holds a named graph's files, or ``None`` if they must be downloaded."""
    if name == "debian":
        return "bundled"
    folders = [folder_of(path, root) for path in BENCHMARKS[name].paths]
    return None if None in folders else str(folders[0])


def _load_benchmark(name: str, split: str | None, root: str | os.PathLike[str] | None) -> Data:
    if name not in BENCHMARKS:
        near = difflib.get_close_matches(name.lower(), NAMES, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise InputError(
            f"name({name!r}) is no known graph: {hint}Known are {', '.join(NAMES)}, "
            "synthetic-hH with H from 0 to 1, or an npz file's path"
        )
    benchmark = BENCHMARKS[name]
    _refuse_split(name, split, "stored", *(() if benchmark.family == "planetoid" else ("public",)))
    data, masks = read_benchmark(benchmark, root)
    data.name, data.notes = name, list(benchmark.notes)
    if split == "public":
        data.update(masks)
    elif split == "geom-gcn":
        data.update(geom_gcn_masks(list(fetch(geom_gcn_paths(benchmark.split_stem), root).values())))
    return data


def _load_npz(path: Path, split: str | None) -> Data:
    if not path.is_file():
        raise InputError(f"name({str(path)!r}): there is no such file; give the path of an npz file")
    _refuse_split(str(path), split, "geom-gcn", "public")
    stored = split == "stored"
    arrays = read_npz(path, str(path), masks=stored)
    masks: dict[str, Any] = stored_masks(arrays) if stored else {}
    data = from_arrays(arrays["node_features"], arrays["edges"].T, arrays["node_labels"], **masks)
    data.name, data.notes = path.stem, []
    return data


def _refuse_split(name: str, split: str | None, *absent: str) -> None:
    if split in absent:
        others = ", ".join(repr(s) for s in SPLITS if s not in absent)
        raise InputError(f"split({split!r}) does not exist for {name}: use one of {others}, or None")
