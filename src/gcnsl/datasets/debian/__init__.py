"""The bundled graph: Debian packages, the sections they are in, the words that describe them, what they depend on.

``docs/debian.md`` is its data card; ``python -m gcnsl.datasets.debian --help`` says how to build it again.
"""

import os
from pathlib import Path

from torch_geometric.data import Data

from gcnsl.datasets.debian.storage import read_npz
from gcnsl.graph import from_arrays

__all__ = ["BUNDLED_FILE", "load_debian"]

BUNDLED_FILE = Path(__file__).with_name("debian.npz")


def load_debian(path: str | os.PathLike[str] = BUNDLED_FILE, *, sparse: bool = False) -> Data:
    """Load the bundled graph, or one built with ``python -m gcnsl.datasets.debian``. Needs no network.

    Args:
        path: The npz file.
        sparse: Leave the features sparse (torch CSR), as the full graph needs it.

    Returns:
        The checked graph with package names as ``node_ids``, words as ``feature_names``, sections as ``class_names``;
        ``provenance`` names the indexes it was built from.
    """
    graph, provenance = read_npz(Path(path))
    data = from_arrays(
        graph.x if sparse else graph.x.toarray(),
        graph.edges.T,
        graph.y,
        class_names=graph.class_names,
        node_ids=graph.packages,
        feature_names=graph.words,
    )
    data.name = Path(path).stem
    data.notes = []
    data.provenance = [", ".join(index.values()) for index in provenance["indexes"]]
    return data
