"""Neighbourhoods that were computed before, in the user's cache: an embedding takes seconds to minutes."""

import contextlib
import hashlib
import io
import zipfile
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from gcnsl.files import atomic_write
from gcnsl.structure.neighbourhood import StructuralNeighbourhood, as_tensors

VERSION = 1
"""To be raised when an embedding changes, so that what is in the cache is not taken for it."""


def path_of(adjacency: sp.csr_array, embedding: str) -> Path:
    """Where the neighbourhood of this very graph is kept."""
    from gcnsl.datasets.files import cache_folder

    digest = hashlib.sha256(f"{VERSION} {embedding} {adjacency.shape[0]}".encode())
    for part in (adjacency.indptr, adjacency.indices):
        digest.update(part.astype("<i8").tobytes())
    return cache_folder() / "structure" / f"{embedding}-{digest.hexdigest()[:32]}.npz"


def read(path: Path) -> StructuralNeighbourhood | None:
    """What is kept there; nothing if there is no such file, or none that can be read."""
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as kept:
            return as_tensors(kept["pairs"], kept["division"], str(kept["how"]))
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None


def write(path: Path, found: StructuralNeighbourhood) -> None:
    """Keep it; where that can't be, it will be computed again."""
    content = io.BytesIO()
    pairs = found.edge_index.numpy().astype(np.int32)
    np.savez_compressed(content, pairs=pairs, division=found.division.numpy(), how=np.array(found.how))
    with contextlib.suppress(OSError):
        atomic_write(path, content.getvalue())
