"""Loads graphs by name or path: those of the literature from their original files, and others from one file.

Edges are read with repeats and loops, so that the same rule (:mod:`gcnsl.graph.edges`) applies to all graphs. A file is

=========  =====================================================================================================
ending     what may be in it
=========  =====================================================================================================
``.npz``   arrays or SciPy matrices by their usual names (:data:`LAYOUT`), as in the heterophilous graphs of Platonov
           et al., the benchmark of Shchur et al., and collections that store a pickled matrix for each part
``.pt``    a ``torch_geometric`` ``Data``, the tuple that PyG's in-memory datasets save, or a ``dict`` of tensors;
           also alone in a zip file, ``.pt.zip``
=========  =====================================================================================================

Unpickling can run code, so only names that build arrays, matrices, tensors and graphs are let through.
"""

import contextlib
import copy
import io
import json
import os
import pickle
import tempfile
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.io
import scipy.sparse as sp
import torch
from sklearn.preprocessing import MultiLabelBinarizer, OneHotEncoder
from torch_geometric.data import Data
from torch_geometric.io import read_planetoid_data

from gcnsl.checks import UNLABELLED
from gcnsl.datasets.benchmarks import (
    BENCHMARKS,
    NAMED_SEED,
    Benchmark,
    check_graph,
    fetch,
    geom_gcn_paths,
    is_graph_file,
    synthetic_homophily,
)
from gcnsl.datasets.synthetic_graphs import synthetic
from gcnsl.errors import InputError
from gcnsl.files import BAD_ZIP
from gcnsl.graph import from_arrays, from_data, from_scipy
from gcnsl.graph.masks import MASKS, draw_folds, fold_masks, random_masks

BUNDLED_FILE = Path(__file__).with_name("debian.npz")
FACEBOOK_COLUMNS = ("status", "gender", "major", "minor", "dorm", "year", "school")
"""The columns of a college's table, which hold codes; 0 stands for an unknown value."""
LAYOUT: dict[str, tuple[str, ...]] = {
    "features": ("node_features", "node_attr", "attr_matrix", "attr", "features", "x"),
    "labels": ("node_labels", "node_label", "labels", "label", "y"),
    "edges": ("edges", "edge_index", "adj_matrix", "adj"),
}
"""The names under which an archive has each part of a graph; a matrix may also be four arrays: ``adj_data``,
``adj_indices``, ``adj_indptr`` and ``adj_shape``."""
_PARTS = ("data", "indices", "indptr", "shape")


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
            other values; or the path of a graph file (:mod:`gcnsl.datasets.loading`).
        split: The masks:

            - ``"random"``: random splits with 48/32/20 % of each class, for any graph;
            - ``"geom-gcn"``: the ten published splits of the graphs of the literature;
            - ``"public"``: the standard split of the citation graphs (20 training nodes per class; one run);
            - ``"stored"``: the masks of a graph file, as some graphs of the literature are;
            - ``None``: no masks.
        directed: Whether to keep the directions of the edges too (``arc_index``), of a graph that has them.
        runs, seed: Number and seed of the random splits.
        root: Folder with dataset files, searched before ``$GCNSL_DATA`` and the user's cache. Files that are not found
            are downloaded.

    The checked graph (see :func:`gcnsl.graph.from_arrays`) has masks (n, or n × runs for several), its ``name`` and
    ``notes`` about it. A graph that is loaded by name, not by path, also has that name as ``benchmark``.
    """
    check_graph(name, split=split, directed=directed)
    name = os.fspath(name)
    if is_graph_file(name):
        data = read_graph_file(Path(name), directed=directed, stored=split == "stored")
        data.name, data.notes = Path(name).name.partition(".")[0], []
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
    data = _read_benchmark(benchmark, root, split, directed=directed)
    data.notes = list(benchmark.notes)
    if split == "geom-gcn":
        files = fetch(geom_gcn_paths(benchmark.split_stem), root).values()
        runs = [np.load(io.BytesIO(content), allow_pickle=False) for content in files]
        data.update({mask: torch.from_numpy(np.stack([run[mask] for run in runs], axis=1)).bool() for mask in MASKS})
    return data


def _read_benchmark(
    benchmark: Benchmark, root: str | os.PathLike[str] | None, split: str | None, *, directed: bool
) -> Data:
    """The checked graph, with masks if ``split`` names those that its files hold."""
    contents = fetch(benchmark.paths, root)
    first, *others = contents.values()
    if benchmark.family in ("npz", "masked-npz"):
        return read_archive(io.BytesIO(first), benchmark.stem, directed=directed, stored=split == "stored")
    if benchmark.family == "facebook":
        return read_facebook(first)
    if benchmark.family == "twitch":
        return read_twitch(first, *others)
    if benchmark.family == "planetoid":
        return _read_planetoid(contents, benchmark.stem, public=split == "public")
    nodes = pd.read_csv(io.BytesIO(first), sep="\t", names=["node", "words", "y"], skiprows=1).sort_values("node")
    words = [np.fromstring(row, dtype=np.int64, sep=",") for row in nodes["words"]]
    x = np.array(words) if benchmark.family == "webkb" else MultiLabelBinarizer().fit_transform(words)
    arcs = np.loadtxt(io.BytesIO(others[0]), dtype=np.int64, skiprows=1)
    return from_arrays(x, arcs.T, nodes["y"].to_numpy(), directed=directed)


def _read_planetoid(contents: Mapping[str, bytes], stem: str, *, public: bool) -> Data:
    """Read a citation graph; its pickles hold arrays and lists only, as their checksums say."""
    with tempfile.TemporaryDirectory(prefix="gcnsl-") as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", category=DeprecationWarning)  # of names in NumPy and SciPy
        for path, content in contents.items():
            Path(folder, Path(path).name).write_bytes(content)
        with contextlib.redirect_stderr(io.StringIO()):
            raw = read_planetoid_data(folder, stem)
    lists: dict[int, list[int]] = pickle.loads(contents[f"planetoid/ind.{stem}.graph"], encoding="latin1")
    edges = [(node, neighbour) for node, neighbours in lists.items() for neighbour in neighbours]
    masks = {name: raw[name][:, None] for name in MASKS} if public else {}
    return from_arrays(raw.x, np.array(edges).T, raw.y, **masks)


def load_debian(path: str | os.PathLike[str] = BUNDLED_FILE, *, sparse: bool = False) -> Data:
    """Load the bundled graph of Debian packages, or another one that ``tools/debian_graph`` wrote, without a network.

    A node is a package. Its class is its section, its features are the words of its description, and an edge means that
    one of two packages needs the other. ``docs/debian.md`` is the data card.

    ``sparse`` keeps the features sparse (torch CSR), which is recommended for the graph of all packages. The graph has
    package names as ``node_ids``, words as ``feature_names`` and sections as ``class_names``; ``provenance`` names the
    package indexes it was built from.
    """
    numbers = ("word_indptr", "word_indices", "edges", "labels")
    texts = ("class_names", "packages", "words", "provenance")
    with _readable(path), np.load(path, allow_pickle=False) as file:
        arrays = {name: file[name] for name in (*numbers, *texts)}
    start, column, edges, y = (arrays[name].astype(np.int64) for name in numbers)
    classes, packages, words, provenance = (arrays[name].astype(str).tolist() for name in texts)
    x = sp.csr_array((np.ones(len(column), np.float32), column, start), shape=(len(packages), len(words)))
    names = {"class_names": classes, "node_ids": packages, "feature_names": words}
    data = from_arrays(x if sparse else x.toarray(), edges.T, y, **names)
    data.name, data.notes = Path(path).stem, []
    data.provenance = [", ".join(index.values()) for index in json.loads(provenance)["indexes"]]
    return data


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


def read_graph_file(path: Path, *, directed: bool = False, stored: bool = False) -> Data:
    """Read a checked graph from a file; ``stored`` asks for the masks that the file has."""
    with _readable(path):
        content = path.read_bytes()
        if path.suffix == ".zip":
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                content = archive.read(archive.namelist()[0])
        saved = None if path.suffix == ".npz" else _load_torch(content)
    if saved is None:
        return read_archive(io.BytesIO(content), path, directed=directed, stored=stored)
    return _from_saved(saved, path, directed=directed, stored=stored)


@contextlib.contextmanager
def _readable(name: object) -> Iterator[None]:
    """Turn what a damaged file raises, which may be anything, into one sentence."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        kinds = (OSError, ValueError, EOFError, pickle.UnpicklingError, *BAD_ZIP)
        why = str(error).partition("\n")[0] if isinstance(error, kinds) else type(error).__name__
        raise InputError(f"{name} can't be read as a graph ({why}): save arrays or a torch_geometric Data") from error


def read_archive(file: Any, name: object, *, directed: bool, stored: bool) -> Data:
    """Read a checked graph from an npz file (:data:`LAYOUT`); edges are m × 2, or 2 × m as ``edge_index``."""
    with _readable(name), zipfile.ZipFile(file) as archive:
        names = {member.removesuffix(".npy") for member in archive.namelist()}
        found: dict[str, Any] = {}
        for part, candidates in LAYOUT.items():
            own = next((each for each in candidates if each in names or f"{each}_indptr" in names), None)
            if own is not None:
                found[part] = _member(archive, own) if own in names else _from_parts(archive, own)
        wanted = MASKS if stored else ()
        masks = {mask: _member(archive, own) for mask in wanted for own in (f"{mask}s", mask) if own in names}
        turned = {mask for mask in masks if f"{mask}s" in names}
    missing = [*(["edges"] if "edges" not in found else []), *(f"{mask}s" for mask in wanted if mask not in masks)]
    if missing:
        raise InputError(f"{name} has no array {missing[0]!r}, only {sorted(names)}: add {', '.join(missing)}")
    edges = found["edges"]
    if sp.issparse(edges):
        entries = sp.coo_array(edges)
        edges = np.stack([entries.row, entries.col])[:, entries.data != 0]
    elif "edges" in names:
        edges = edges.T
    for mask, values in masks.items():  # of several runs in rows
        masks[mask] = values.T.astype(bool) if mask in turned else values.astype(bool)
    return from_arrays(found.get("features"), edges, _class_numbers(found.get("labels")), directed=directed, **masks)


def _member(archive: zipfile.ZipFile, name: str) -> Any:
    """An array of an archive, or the matrix that is pickled in its place."""
    content = io.BytesIO(archive.read(f"{name}.npy"))
    version = np.lib.format.read_magic(content)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    if not read(content)[2].hasobject:
        content.seek(0)
        return np.load(content, allow_pickle=False)
    array = _ArraysOnly(content, encoding="latin1").load()
    return array.item() if isinstance(array, np.ndarray) and array.ndim == 0 else array


def _from_parts(archive: zipfile.ZipFile, name: str) -> sp.csr_array:
    data, indices, indptr, shape = (_member(archive, f"{name}_{part}") for part in _PARTS)
    matrix: sp.csr_array = sp.csr_array((data, indices, indptr), shape=tuple(shape))
    return matrix


class _ArraysOnly(pickle.Unpickler):
    """Builds NumPy arrays and SciPy's sparse matrices, and nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        if module.startswith("scipy.sparse") and name in ("csr_matrix", "csc_matrix", "coo_matrix", "csr_array"):
            return getattr(sp, name)
        if module.startswith("numpy") and name in ("ndarray", "dtype"):
            return getattr(np, name)
        if module.startswith("numpy") and name == "_reconstruct":
            return np.empty(0).__reduce__()[0]
        if module.startswith("numpy") and name == "scalar":
            return np.int64(0).__reduce__()[0]
        raise pickle.UnpicklingError(f"it names {module}.{name}, and only arrays and matrices are read")


def _load_torch(content: bytes) -> Any:
    """What ``torch.save`` has written, if it is made of tensors, containers and PyG's graphs."""
    from torch_geometric.data import data as pyg
    from torch_geometric.data import storage

    known: list[Any] = [Data, storage.GlobalStorage, storage.NodeStorage, storage.EdgeStorage]
    known += [getattr(pyg, name) for name in ("DataEdgeAttr", "DataTensorAttr") if hasattr(pyg, name)]
    with torch.serialization.safe_globals(known):
        return torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)


def _from_saved(found: Any, path: Path, *, directed: bool, stored: bool) -> Data:
    if isinstance(found, tuple | list) and found:
        found = found[0]  # an in-memory dataset saves its graphs, collated, and where each begins
    if isinstance(found, Mapping):
        found = Data(**{str(key): value for key, value in found.items()})
    if not isinstance(found, Data) or found.edge_index is None:
        raise InputError(f"{path} holds a {type(found).__name__}, which is no graph: save a Data with x, edge_index, y")
    graph = found.clone()
    if graph.y is not None:
        graph.y = torch.from_numpy(np.asarray(_class_numbers(graph.y.numpy())))
    for mask in MASKS:
        if not stored and mask in graph:
            del graph[mask]
    if stored and "train_mask" not in graph:
        raise InputError(f"{path} has no train_mask: add the masks, or choose another split")
    return from_data(graph, directed=directed)


def _class_numbers(y: Any) -> Any:
    """The labels (n); of a one-hot matrix (n × C) the columns, of a matrix with one column that column."""
    if y is None or getattr(y, "ndim", 1) != 2:
        return y
    dense = np.asarray(y.todense() if sp.issparse(y) else y)
    if dense.shape[1] == 1:
        return dense[:, 0]
    is_one_hot = ((dense == 0) | (dense == 1)).all() and (dense.sum(axis=1) <= 1).all()
    if not is_one_hot:
        raise InputError(
            f"the labels are a matrix of {dense.shape[1]} columns: this tool finds one class for each node"
        )
    return np.where(dense.any(axis=1), dense.argmax(axis=1), -1)
