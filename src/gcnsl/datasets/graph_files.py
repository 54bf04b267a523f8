"""Graphs in one file: NumPy archives as public collections lay them out, and the graphs that PyG users save.

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
import io
import pickle
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch_geometric.data import Data

from gcnsl.errors import InputError
from gcnsl.files import BAD_ZIP
from gcnsl.graph.masks import MASKS
from gcnsl.graph.sources import from_arrays, from_data

LAYOUT: dict[str, tuple[str, ...]] = {
    "features": ("node_features", "node_attr", "attr_matrix", "attr", "features", "x"),
    "labels": ("node_labels", "node_label", "labels", "label", "y"),
    "edges": ("edges", "edge_index", "adj_matrix", "adj"),
}
"""The names under which an archive has each part of a graph; a matrix may also be four arrays: ``adj_data``,
``adj_indices``, ``adj_indptr`` and ``adj_shape``."""
_PARTS = ("data", "indices", "indptr", "shape")


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
