"""Computed neighbourhoods in the user's cache folder, because an embedding takes seconds to minutes."""

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
"""Increase it when an embedding changes, so that older files are ignored."""


def path_of(adjacency: sp.csr_array, embedding: str) -> Path:
    """The file for the neighbourhood of exactly this graph."""
    from gcnsl.datasets.dataset_files import cache_folder

    digest = hashlib.sha256(f"{VERSION} {embedding} {adjacency.shape[0]}".encode())
    for part in (adjacency.indptr, adjacency.indices):
        digest.update(part.astype("<i8").tobytes())
    return cache_folder() / "structure" / f"{embedding}-{digest.hexdigest()[:32]}.npz"


def read(path: Path) -> StructuralNeighbourhood | None:
    """The neighbourhood in a file; None if the file is missing or damaged."""
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as stored:
            return as_tensors(stored["pairs"], stored["division"], str(stored["how"]))
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None


def write(path: Path, found: StructuralNeighbourhood) -> None:
    """Write a neighbourhood to a file. If that fails, it is simply computed again next time."""
    content = io.BytesIO()
    pairs = found.edge_index.numpy().astype(np.int32)
    np.savez_compressed(content, pairs=pairs, division=found.division.numpy(), how=np.array(found.how))
    with contextlib.suppress(OSError):
        atomic_write(path, content.getvalue())
