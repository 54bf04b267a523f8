"""Features that are mostly 0, such as counts of words, beside the columns of the nodes: a matrix or a long table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import scipy.sparse as sp

from gcnsl.errors import ArgumentError, InputError
from gcnsl.files import BAD_ZIP
from gcnsl.graph.linked_tables import as_ids, positions
from gcnsl.graph.tables import IDS, Table, Written, read_table

NAMES = (IDS, ("feature", "word", "token", "item", "key"), ("value", "count", "weight"))
"""The usual names of the columns of a long table; else they are the first, the second and the third."""


class Wide(NamedTuple):
    """Sparse features of all nodes."""

    column: str
    """What they are together called."""
    names: list[str]
    matrix: sp.csr_array
    """n × d, float32."""


def aligned(wide: Wide | None, column: str, names: Sequence[str]) -> sp.csr_array:
    """The features (n × d) that a model knows: others are left out, and those that are not there are 0."""
    if wide is None:
        raise InputError(f"the model was trained with the further features {column!r}: give those of these nodes, too")
    if wide.names == names:
        return wide.matrix
    place = pd.Index(wide.names).get_indexer(pd.Index(names))
    padded = sp.hstack([wide.matrix, sp.csr_array((wide.matrix.shape[0], 1), dtype=np.float32)], format="csc")
    return sp.csr_array(padded[:, np.where(place < 0, len(wide.names), place)])


def read_wide(given: Any, ids: pa.ChunkedArray, nodes: str, written: Written) -> Wide:
    """Read the features of nodes with these ids from a matrix, its file, or a table ``node, feature[, value]``."""
    matrix: Any = given
    is_path = isinstance(given, str) or hasattr(given, "__fspath__")
    if is_path and Path(given).suffix in (".npz", ".npy"):
        matrix = _load(Path(given))
    column = Path(given).name.partition(".")[0] if is_path else "feature"
    if sp.issparse(matrix) or isinstance(matrix, np.ndarray):
        if matrix.ndim != 2 or matrix.shape[0] != len(ids) or matrix.dtype.kind not in "biuf":
            shape = " × ".join(map(str, matrix.shape))
            raise InputError(
                f"the features are {shape} of type {matrix.dtype}: give numbers, a row for each of {len(ids)} nodes"
            )
        matrix = sp.csr_array(matrix).astype(np.float32)
        names = [str(k) for k in range(matrix.shape[1])]
    else:
        matrix, names = _long(matrix, ids, nodes, written)
    matrix = sp.csr_array(matrix)
    matrix.sum_duplicates()
    if not np.isfinite(matrix.data).all():
        raise InputError(f"the features of {column} are not all finite: fill or clip them")
    return Wide(column, names, matrix)


def _load(path: Path) -> Any:
    """The matrix in a file of NumPy or SciPy."""
    if not path.is_file():
        raise ArgumentError("features", str(path), "does not exist: give a table, or a matrix (.npz, .npy)")
    try:
        if path.suffix == ".npy":
            return np.load(path, allow_pickle=False)
        with np.load(path, allow_pickle=False) as archive:
            if "indptr" not in archive.files:
                return archive[archive.files[0]]
        return sp.load_npz(path)
    except (OSError, ValueError, EOFError, *BAD_ZIP) as error:
        raise InputError(
            f"{path} can't be read as a matrix ({error}): use scipy.sparse.save_npz or numpy.save"
        ) from error


def _long(given: Any, ids: pa.ChunkedArray, nodes: str, written: Written) -> tuple[sp.csr_array, list[str]]:
    """The matrix and its names, of a table with the columns ``node, feature[, value]``."""

    def columns(names: Sequence[str]) -> list[str]:
        return [next((u for u in usual if u in names), name) for usual, name in zip(NAMES, names, strict=False)]

    table: Table = read_table(given, "features", text=lambda names: columns(names)[:2], written=written)
    node, feature, *value = columns(list(table.columns))
    owners = as_ids(table, node)
    known = ids if owners.type == ids.type else ids.cast(pa.large_string())
    row = positions(known.combine_chunks(), owners if owners.type == ids.type else owners.cast(pa.large_string()))
    if (row < 0).any():
        bad = int(np.flatnonzero(row < 0)[0])
        raise InputError(f"{table.place_in_row(bad, node)} is {owners[bad].as_py()!r}, which is not an id in {nodes}")
    number, names = pd.factorize(table.as_text(feature), sort=True)
    try:
        cells = (
            table.columns[value[0]].cast(pa.float32(), safe=False).to_numpy()
            if value
            else np.ones(len(row), np.float32)
        )
    except pa.ArrowException as error:
        raise InputError(f"{table.name}: column {value[0]!r} holds no numbers ({error})") from error
    return sp.csr_array((cells, (row, number)), shape=(len(ids), len(names))), names.tolist()
