"""The identity of a run: a hash of data, method, options, split, seed and version. Only equal runs are resumed."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch_geometric.data import Data

from gcnsl.files import digest
from gcnsl.graph.edges import edge_parts
from gcnsl.sparse import stored_parts
from gcnsl.version import __version__

_CSR = ("data", "indices", "indptr")
_NAMES = ("feature_names", "class_names", "benchmark")


def graph_digest(data: Data, parts: Mapping[str, Tensor] | None = None) -> str:
    """SHA-256 of a graph: features, the table columns they are made of, edges and names; labels only as ``parts``."""
    tensors = {**stored_parts(data.x, "x"), **edge_parts(data), **(parts or {})}
    names = {name: json.dumps(data[name]) for name in _NAMES if data.get(name) is not None}
    columns = data.get("columns")
    if columns is not None:  # which the features of a split are made of later
        rows = pd.util.hash_pandas_object(columns.table.arrow.to_pandas(), index=False)
        tensors["columns"] = torch.from_numpy(rows.to_numpy().view(np.int64).copy())
        names["kinds"] = json.dumps(columns.kinds)
        if columns.wide is not None:
            tensors |= {f"wide.{part}": torch.from_numpy(getattr(columns.wide.matrix, part)) for part in _CSR}
    return digest(tensors, names)


def identity(data: Data, parts: Mapping[str, Tensor], **facts: Any) -> str:
    """SHA-256 of all that decides the result of a run; the version of this package is part of it.

    Args:
        data: The graph.
        parts: The labels, and the masks or folds, by name.
        facts: All else, as values for JSON: the method, all of its options, the metric, the seed.
    """
    plain = json.dumps({**facts, "version": __version__}, sort_keys=True)
    return digest({}, {"graph": graph_digest(data, parts), "facts": plain})
