"""Loads graphs of the literature, the bundled graph and synthetic graphs by name, and npz files by path."""

import copy
import difflib
import os
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from torch_geometric.data import Data

from gcnsl.checks import UNLABELLED, check_choice, check_flag
from gcnsl.datasets.benchmarks import BENCHMARKS, read_benchmark, read_npz
from gcnsl.datasets.dataset_files import fetch, find
from gcnsl.datasets.debian import load_debian
from gcnsl.datasets.splits import draw_folds, fold_masks, geom_gcn_masks, geom_gcn_paths, random_masks
from gcnsl.datasets.synthetic import NAMED_SEED, synthetic, synthetic_homophily
from gcnsl.errors import ArgumentError, InputError
from gcnsl.graph import from_arrays
from gcnsl.graph.masks import MASKS

__all__ = ["NAMES", "SPLITS", "is_known", "load", "synthetic", "where", "with_folds", "with_random_split"]

NAMES = (*BENCHMARKS, "debian")
"""The real graphs that :func:`load` knows by name."""

SPLITS = ("random", "geom-gcn", "public", "stored")


def load(
    name: str | os.PathLike[str],
    *,
    split: str | None = "random",
    directed: bool = False,
    runs: int = 10,
    seed: int = 0,
    root: str | os.PathLike[str] | None = None,
) -> Data:
    """Load a graph.

    Args:
        name: One of :data:`NAMES`; ``"synthetic-h0.3"`` for :func:`synthetic` with h = 0.3, likewise for other values;
            or the path of an npz file in the heterophilous format.
        split: The masks:

            - ``"random"``: random splits with 48/32/20 % of each class, for any graph;
            - ``"geom-gcn"``: the ten published splits of the graphs of the literature;
            - ``"public"``: the standard split of the citation graphs (20 training nodes per class; one run);
            - ``"stored"``: the masks of an npz file, which some graphs of the literature are;
            - ``None``: no masks.
        directed: Whether to keep the directions of the edges too (``arc_index``), of a graph that has them.
        runs, seed: Number and seed of the random splits.
        root: Folder with dataset files, searched before ``$GCNSL_DATA`` and the user's cache. Files that are not found
            are downloaded.

    The checked graph (see :func:`gcnsl.graph.from_arrays`) has masks (n × runs), its ``name`` and ``notes`` about it.
    A graph that is loaded by name, not by path, also has that name as ``benchmark``.
    """
    if split is not None:
        check_choice("split", split, SPLITS, or_else=", or None")
    if not isinstance(name, str | os.PathLike):
        raise ArgumentError("name", name, f"must be one of {', '.join(NAMES)}, or the path of an npz file")
    check_flag("directed", directed)
    name = os.fspath(name)
    if Path(name).suffix == ".npz":
        data = _load_npz(Path(name), split, directed=directed)
    else:
        data = _load_named(name, split, root, directed=directed)
        data.name = data.benchmark = name
    return with_random_split(data, runs=runs, seed=seed) if split == "random" else data


def is_known(name: str) -> bool:
    """Return whether :func:`load` knows a graph by this name."""
    return name in NAMES or synthetic_homophily(name) is not None


def with_random_split(data: Data, *, runs: int = 10, seed: int = 0) -> Data:
    """Return the graph with random masks: training, validation and test nodes are 48/32/20 % of each class."""
    data = _labelled_copy(data)
    data.update(random_masks(data.y, runs, seed))
    return data


def with_folds(data: Data, folds: Any, *, seed: int = 0) -> Data:
    """Return the graph with masks for cross-validation: run r is tested on fold r, and learns from the others.

    Args:
        data: A graph with labels.
        folds: The number of folds, which are drawn with the same share of each class; or each node's fold (n), such as
            ``data.fold``, a negative number for a node that is never tested.
        seed: Of the folds, if they are drawn, and of the validation nodes: 40 % of each class outside of the fold.
    """
    data = _labelled_copy(data)
    numbers = draw_folds(data.y, int(folds), seed) if isinstance(folds, Integral) else np.asarray(folds)
    data.update(fold_masks(data.y, numbers, seed))
    return data


def _labelled_copy(data: Data) -> Data:
    if data.y is None or (data.y == UNLABELLED).all():
        raise InputError("the graph has no labels to split: name their column (label=...), or give y")
    return copy.copy(data)


def where(name: str, root: str | os.PathLike[str] | None = None) -> str | None:
    """Return the folder with the files of a graph, ``"bundled"``, or ``None`` if they must be downloaded."""
    if name == "debian":
        return "bundled"
    paths = BENCHMARKS[name].paths
    first, *others = (find(path, root) for path in paths)
    return None if first is None or None in others else str(first.parents[paths[0].count("/")])


def _load_named(name: str, split: str | None, root: str | os.PathLike[str] | None, *, directed: bool) -> Data:
    homophily = synthetic_homophily(name)
    with_directions = [other for other, benchmark in BENCHMARKS.items() if benchmark.has_directions]
    if directed and is_known(name) and name not in with_directions:
        rule = f"is not possible: the edges of {name} have no directions, unlike {', '.join(with_directions)}"
        raise ArgumentError("directed", True, rule)
    if name == "debian" or homophily is not None:
        _refuse_split(name, split, "geom-gcn", "public", "stored")
        return load_debian() if homophily is None else synthetic(h=homophily, seed=NAMED_SEED)
    if name not in BENCHMARKS:
        near = difflib.get_close_matches(name.lower(), NAMES, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        known = f"{', '.join(NAMES)}, synthetic-hH with H from 0 to 1, and paths of npz files"
        raise ArgumentError("name", name, f"is not a known graph: {hint}Known are {known}")
    benchmark = BENCHMARKS[name]
    _refuse_split(name, split, *(other for other in SPLITS[1:] if other not in benchmark.splits))
    data, masks = read_benchmark(benchmark, root, directed=directed)
    data.notes = list(benchmark.notes)
    if split in ("public", "stored"):
        data.update(masks)
    elif split == "geom-gcn":
        data.update(geom_gcn_masks(list(fetch(geom_gcn_paths(benchmark.split_stem), root).values())))
    return data


def _load_npz(path: Path, split: str | None, *, directed: bool) -> Data:
    if not path.is_file():
        raise ArgumentError("name", str(path), "does not exist: give the path of an npz file")
    _refuse_split(str(path), split, "geom-gcn", "public")
    stored = split == "stored"
    arrays = read_npz(path, str(path), masks=stored)
    masks: dict[str, Any] = {mask: arrays[f"{mask}s"].T for mask in MASKS} if stored else {}  # stored as runs × n
    data = from_arrays(arrays["node_features"], arrays["edges"].T, arrays["node_labels"], directed=directed, **masks)
    data.name, data.notes = path.stem, []
    return data


def _refuse_split(name: str, split: str | None, *absent: str) -> None:
    if split in absent:
        others = ", ".join(repr(s) for s in SPLITS if s not in absent)
        raise ArgumentError("split", split, f"does not exist for {name}: use one of {others}, or None")
