"""The bundled graph of Debian packages.

A node is a package. Its class is its section, its features are the words of its description, and an edge means that one
of two packages needs the other. ``docs/debian.md`` is the data card. ``tools/debian_graph`` in the source repository
wrote the file.
"""

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from torch_geometric.data import Data

from gcnsl.errors import ArgumentError
from gcnsl.files import BAD_ZIP
from gcnsl.graph import from_arrays

BUNDLED_FILE = Path(__file__).with_name("debian.npz")


class PackageGraph(NamedTuple):
    """The graph as arrays: n packages sorted by name, d words, m edges."""

    x: sp.csr_array
    """Which package uses which word: 0 or 1, n × d."""
    edges: NDArray[np.int64]
    """Each edge once, smaller node number first, sorted: m × 2."""
    y: NDArray[np.int64]
    """The section of each package: n."""
    class_names: list[str]
    words: list[str]
    packages: list[str]


def load_debian(path: str | os.PathLike[str] = BUNDLED_FILE, *, sparse: bool = False) -> Data:
    """Load the bundled graph, or another one that ``tools/debian_graph`` wrote. No network is needed.

    ``sparse`` keeps the features sparse (torch CSR), which is recommended for the graph of all packages. The graph has
    package names as ``node_ids``, words as ``feature_names`` and sections as ``class_names``; ``provenance`` names the
    package indexes it was built from.
    """
    graph, provenance = read_npz(Path(path))
    x = graph.x if sparse else graph.x.toarray()
    data = from_arrays(
        x,
        graph.edges.T,
        graph.y,
        class_names=graph.class_names,
        node_ids=graph.packages,
        feature_names=graph.words,
    )
    data.name, data.notes = Path(path).stem, []
    data.provenance = [", ".join(index.values()) for index in provenance["indexes"]]
    return data


def read_npz(path: Path) -> tuple[PackageGraph, Any]:
    """Read the graph and its provenance (decoded JSON) from an npz file."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        names = ("word_indptr", "word_indices", "edges", "labels")
        indptr, indices, edges, y = (arrays[name].astype(np.int64) for name in names)
        names = ("class_names", "words", "packages", "provenance")
        classes, words, packages, provenance = (arrays[name].astype(str).tolist() for name in names)
        entries = (np.ones(len(indices), dtype=np.float32), indices, indptr)
        x = sp.csr_array(entries, shape=(len(packages), len(words)))
        return PackageGraph(x, edges, y, classes, words, packages), json.loads(provenance)
    except (OSError, ValueError, EOFError, KeyError, AttributeError, *BAD_ZIP) as error:
        rule = f"is not a graph of Debian packages ({error}): give a file that tools/debian_graph wrote"
        raise ArgumentError("path", str(path), rule) from error
