"""Loads graphs by name or path, and reads those of the literature from their original files.

torch_geometric parses the features and labels. The edges are read here, with repeats and loops, so that the same rule
(:mod:`gcnsl.graph.edges`) applies to all graphs.
"""

import contextlib
import copy
import io
import json
import os
import pickle
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.io
import torch
from numpy.typing import NDArray
from sklearn.preprocessing import MultiLabelBinarizer, OneHotEncoder
from torch_geometric.data import Data
from torch_geometric.datasets import Actor, WebKB
from torch_geometric.io import read_planetoid_data

from gcnsl.checks import UNLABELLED
from gcnsl.datasets.benchmarks import (
    BENCHMARKS,
    EDGES_FILE,
    NAMED_SEED,
    Benchmark,
    check_graph,
    geom_gcn_paths,
    synthetic_homophily,
)
from gcnsl.datasets.dataset_files import fetch
from gcnsl.datasets.debian import load_debian
from gcnsl.datasets.synthetic_graphs import synthetic
from gcnsl.errors import InputError
from gcnsl.files import BAD_ZIP
from gcnsl.graph import from_arrays, from_scipy
from gcnsl.graph.masks import MASKS, Masks, draw_folds, fold_masks, random_masks

FACEBOOK_COLUMNS = ("status", "gender", "major", "minor", "dorm", "year", "school")
"""The columns of a college's table, which hold codes; 0 stands for an unknown value."""


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
        name: One of :data:`gcnsl.datasets.NAMES`; ``"synthetic-h0.3"`` for :func:`synthetic` with h = 0.3, likewise for
            other values; or the path of an npz file in the heterophilous format.
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
    check_graph(name, split=split, directed=directed)
    name = os.fspath(name)
    if Path(name).suffix == ".npz":
        data = _load_npz(Path(name), split, directed=directed)
    else:
        data = _load_named(name, split, root, directed=directed)
        data.name = data.benchmark = name
    return with_random_split(data, runs=runs, seed=seed) if split == "random" else data


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


def _load_named(name: str, split: str | None, root: str | os.PathLike[str] | None, *, directed: bool) -> Data:
    homophily = synthetic_homophily(name)
    if name == "debian" or homophily is not None:
        return load_debian() if homophily is None else synthetic(h=homophily, seed=NAMED_SEED)
    benchmark = BENCHMARKS[name]
    data, masks = read_benchmark(benchmark, root, directed=directed)
    data.notes = list(benchmark.notes)
    if split in ("public", "stored"):
        data.update(masks)
    elif split == "geom-gcn":
        data.update(geom_gcn_masks(list(fetch(geom_gcn_paths(benchmark.split_stem), root).values())))
    return data


def _load_npz(path: Path, split: str | None, *, directed: bool) -> Data:
    stored = split == "stored"
    arrays = read_npz(path, str(path), masks=stored)
    masks: dict[str, Any] = {mask: arrays[f"{mask}s"].T for mask in MASKS} if stored else {}  # stored as runs × n
    data = from_arrays(arrays["node_features"], arrays["edges"].T, arrays["node_labels"], directed=directed, **masks)
    data.name, data.notes = path.stem, []
    return data


def read_benchmark(
    benchmark: Benchmark, root: str | os.PathLike[str] | None = None, *, directed: bool = False
) -> tuple[Data, Masks]:
    """Read a checked graph, and the masks that its files hold: a public or a stored split, or none."""
    files = {Path(path).name: content for path, content in fetch(benchmark.paths, root).items()}
    stem = benchmark.stem
    if benchmark.family in ("npz", "masked-npz"):
        arrays = read_npz(io.BytesIO(files[f"{stem}.npz"]), stem)
        data = from_arrays(arrays["node_features"], arrays["edges"].T, arrays["node_labels"], directed=directed)
        return data, {name: torch.from_numpy(arrays[f"{name}s"].T) for name in MASKS}  # stored as runs × n
    if benchmark.family == "facebook":
        return read_facebook(*files.values()), {}
    if benchmark.family == "twitch":
        return read_twitch(*files.values()), {}
    if benchmark.family == "planetoid":
        with _on_disk(files) as folder:  # their checksums are those of pickles that hold arrays and lists only
            raw = read_planetoid_data(folder, stem)
        lists: dict[int, list[int]] = pickle.loads(files[f"ind.{stem}.graph"], encoding="latin1")
        edges = [(node, neighbour) for node, neighbours in lists.items() for neighbour in neighbours]
        return from_arrays(raw.x, np.array(edges).T, raw.y), {name: raw[name][:, None] for name in MASKS}
    nested = "raw" if benchmark.family == "actor" else f"{stem}/raw"
    with _on_disk({f"{nested}/{name}": content for name, content in files.items()}) as folder:
        raw = (Actor(folder) if benchmark.family == "actor" else WebKB(folder, stem))[0]
    arcs = np.loadtxt(io.BytesIO(files[EDGES_FILE]), dtype=np.int64, skiprows=1)
    return from_arrays(raw.x, arcs.T, raw.y, directed=directed), {}


def read_npz(file: Any, name: str, *, masks: bool = False) -> dict[str, NDArray[Any]]:
    """Read the heterophilous format: ``node_features``, ``node_labels``, ``edges`` (m × 2), ``train_masks`` etc."""
    try:
        with np.load(file, allow_pickle=False) as archive:
            arrays = {key: archive[key] for key in archive.files}
    except (OSError, ValueError, EOFError, KeyError, TypeError, AttributeError, *BAD_ZIP) as error:
        why = "it holds Python objects" if "pickle" in str(error) else error
        raise InputError(f"{name} can't be read as an npz file ({why}): store plain arrays with np.savez") from error
    wanted = ["node_features", "node_labels", "edges"] + [f"{mask}s" for mask in MASKS if masks]
    missing = [key for key in wanted if key not in arrays]
    if missing:
        raise InputError(f"{name} has no array {missing[0]!r}, only {sorted(arrays)}: add {', '.join(missing)}")
    return arrays


@contextlib.contextmanager
def _on_disk(files: Mapping[str, bytes]) -> Iterator[str]:
    """Write verified contents to a temporary folder, for readers that take paths.

    The readers print to stderr and use deprecated names of NumPy and SciPy; both are hidden from the user.
    """
    with tempfile.TemporaryDirectory(prefix="gcnsl-") as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", category=DeprecationWarning)
        for path, content in files.items():
            target = Path(folder, path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        with contextlib.redirect_stderr(io.StringIO()):
            yield folder


def geom_gcn_masks(files: list[bytes]) -> Masks:
    """Read masks from the contents of Geom-GCN's split files."""
    runs = [np.load(io.BytesIO(content), allow_pickle=False) for content in files]
    return {name: torch.from_numpy(np.stack([run[name].astype(bool) for run in runs], axis=1)) for name in MASKS}


def read_facebook(content: bytes) -> Data:
    """Read a MATLAB file with ``A`` (n × n) and ``local_info`` (n × 7): the class is the gender, 1 or 2.

    The other columns are one-hot encoded; 0, an unknown value, is a level of its own.
    """
    file = scipy.io.loadmat(io.BytesIO(content))
    table = pd.DataFrame(file["local_info"].astype(np.int64), columns=FACEBOOK_COLUMNS)
    gender, codes = table["gender"], table.drop(columns="gender")
    encoder = OneHotEncoder(dtype=np.float32).fit(codes)
    y = np.where(gender == 0, UNLABELLED, gender - 1)
    names = {"class_names": ["gender 1", "gender 2"], "feature_names": encoder.get_feature_names_out().tolist()}
    return from_scipy(file["A"], encoder.transform(codes).toarray(), y, **names)


def read_twitch(edges: bytes, features: bytes, target: bytes) -> Data:
    """Read a country's streamers: friendships, what they play and like, and as the class whether that is for adults."""
    nodes = pd.read_csv(io.BytesIO(target)).set_index("new_id").sort_index()
    active = {int(node): indices for node, indices in json.loads(features).items()}
    encoder = MultiLabelBinarizer()
    x = encoder.fit_transform([active[node] for node in nodes.index]).astype(np.float32)
    names = {"class_names": ["general", "mature"], "feature_names": encoder.classes_.tolist()}
    ends = pd.read_csv(io.BytesIO(edges))[["from", "to"]].to_numpy()
    return from_arrays(x, ends.T, nodes["mature"].to_numpy().astype(np.int64), **names)
