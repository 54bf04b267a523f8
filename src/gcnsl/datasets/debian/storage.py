"""The graph as a npz file: no pickle, and the same bytes whenever and wherever the same graph is written."""

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gcnsl.datasets.debian.build import PackageGraph
from gcnsl.errors import InputError

EPOCH = (1980, 1, 1, 0, 0, 0)
"""The earliest date a zip file can hold stands for all of them."""


def write_npz(path: Path, graph: PackageGraph, provenance: Any) -> None:
    """Write a graph and where it comes from. Entries are stored, not deflated: the bytes depend on no zlib version."""
    arrays: dict[str, NDArray[Any]] = {
        "word_indptr": _shortest(graph.x.indptr),
        "word_indices": _shortest(graph.x.indices),
        "edges": _shortest(graph.edges),
        "labels": _shortest(graph.y),
        "class_names": np.array(graph.class_names, dtype="S"),
        "words": np.array(graph.words, dtype="S"),
        "packages": np.array(graph.packages, dtype="S"),
        "provenance": np.array(json.dumps(provenance), dtype="S"),
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            content = io.BytesIO()
            np.lib.format.write_array(content, array, version=(1, 0), allow_pickle=False)
            entry = zipfile.ZipInfo(f"{name}.npy", EPOCH)
            entry.create_system = 3  # Unix, wherever this runs
            archive.writestr(entry, content.getvalue())


def _shortest(values: NDArray[Any]) -> NDArray[Any]:
    """The same whole numbers in the shortest unsigned type that holds them."""
    return values.astype(np.min_scalar_type(values.max()).newbyteorder("<"))


def read_npz(path: Path) -> tuple[PackageGraph, Any]:
    """Read what :func:`write_npz` wrote: the graph and its provenance."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        indptr, indices = (arrays[name].astype(np.int64) for name in ("word_indptr", "word_indices"))
        shape = (len(arrays["packages"]), len(arrays["words"]))
        x = sp.csr_array((np.ones(len(indices), dtype=np.float32), indices, indptr), shape=shape)
        names = {name: arrays[name].astype(str).tolist() for name in ("class_names", "words", "packages", "provenance")}
        graph = PackageGraph(
            x=x,
            edges=arrays["edges"].astype(np.int64),
            y=arrays["labels"].astype(np.int64),
            class_names=names["class_names"],
            words=names["words"],
            packages=names["packages"],
        )
        return graph, json.loads(names["provenance"])
    except (OSError, ValueError, KeyError, AttributeError, zipfile.BadZipFile) as error:
        remedy = "make it with python -m gcnsl.datasets.debian"
        raise InputError(f"path({path}) is not a Debian package graph ({error}): {remedy}") from error
