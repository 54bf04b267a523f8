"""Writes the graph as an npz file: without pickle, and always with the same bytes for the same graph."""

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gcnsl.datasets.debian import PackageGraph

EPOCH = (1980, 1, 1, 0, 0, 0)
"""The date of every entry: the earliest that a zip file can hold."""


def write_npz(path: Path, graph: PackageGraph, provenance: Any) -> None:
    """Write a graph and its provenance for :func:`gcnsl.datasets.debian.read_npz`.

    Entries are stored uncompressed, so that the bytes do not depend on the version of zlib.
    """
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
            entry.create_system = 3  # Unix, on every operating system
            archive.writestr(entry, content.getvalue())


def _shortest(values: NDArray[Any]) -> NDArray[Any]:
    """Convert integers to the smallest unsigned type that holds them all."""
    return values.astype(np.min_scalar_type(values.max()).newbyteorder("<"))
