"""A checked graph from a table with one row per node and a table with one row per edge.

Columns stay in Arrow from the file to the last check, so that loading a table of millions of rows takes little longer
than reading it. Messages name the table, the row and the column; the first row below the header is row 1.
"""

import os
import warnings
from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from gcnsl.checks import UNLABELLED
from gcnsl.errors import ArgumentError, InputError
from gcnsl.graph.column_encoder import ColumnEncoder, fit_float32
from gcnsl.graph.columns import Columns
from gcnsl.graph.edge_table import as_ids, read_edges
from gcnsl.graph.labels import UnknownLabelsWarning, is_often_unknown, read_label_column, unknown_in_words
from gcnsl.graph.masks import PARTS
from gcnsl.graph.sources import from_arrays
from gcnsl.graph.tables import Table, read_table

Source = str | os.PathLike[str] | Any
"""A path (CSV, TSV or Parquet; text files may end in ``.gz``), a pandas DataFrame or a pyarrow Table."""

_NUMERIC = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean)


def from_tables(
    nodes: Source,
    edges: Source,
    *,
    id: str | None = None,  # noqa: A002 - the usual name of the column
    label: str | None = None,
    name: str | None = None,
    split: str | Sequence[str] | None = None,
    fold: str | None = None,
    features: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    categorical: Sequence[str] = (),
    numeric: Sequence[str] = (),
    unknown: Sequence[Any] | None = None,
    encoder: ColumnEncoder | None = None,
    source: str | None = None,
    target: str | None = None,
    weight: str | Literal[False] | None = None,
    directed: bool = False,
) -> Data:
    """Read a graph from a table of nodes and a table of edges.

    Args:
        nodes: One row per node, with an id, features of any kind and, where it is known, a class.
        edges: One row per edge, with the ids of its two ends and, if edges have weights, its weight.
        id: Column of ``nodes`` with the ids; by default ``id`` if there is one, else the first column.
        label: Column of ``nodes`` with the classes, names or integers; by default ``label`` if there is one.
        name: Column of ``nodes`` that says what to call them where people read of them; it is no feature.
        split: Column of ``nodes`` with ``train``, ``val``, ``test`` or nothing; by default ``split`` if there is one.
            Several columns are the splits of as many runs.
        fold: Column of ``nodes`` with the number of each node's fold, empty for a node that is never tested; it
            becomes ``data.fold`` (n), for :func:`gcnsl.datasets.with_folds`.
        features: Columns of ``nodes`` with the features; by default all remaining columns.
        drop: Columns of ``nodes`` that are not features.
        categorical: Features that are categories even if they look like numbers, such as codes.
        numeric: Features that are numbers even if they are text.
        unknown: Labels of nodes whose class is not known, besides those that are missing; by default -1, ``NA``,
            ``null`` and the like (:data:`gcnsl.graph.labels.UNKNOWN`), with a warning if many nodes have one.
        encoder: The encoder of a trained model, to read a table for it. The encoder knows the columns and their kinds,
            so that ``features``, ``drop``, ``categorical`` and ``numeric`` are ignored.
        source: Column of ``edges`` with one end; by default ``source`` if there is one, else the first column.
        target: Column of ``edges`` with the other end; by default ``target`` if there is one, else the second column.
            A text file of edges may lack a header: if its first row holds two numbers or two ids, that is an edge.
        weight: Column of ``edges`` with the weights, positive numbers; by default ``weight`` if there is one that holds
            numbers. ``False`` for none.
        directed: Whether edges lead from ``source`` to ``target``, and the directions are kept too.

    Complete numeric columns are features as they are. If there are any others, ``x`` has all columns as the graph's
    ``encoder`` encodes them: see :mod:`gcnsl.graph.columns` for the kinds of columns, and
    :mod:`gcnsl.graph.column_encoder` for what becomes of each. It is fitted to the training rows, or to all rows if
    there is no split; the graph keeps the ``columns`` for :func:`gcnsl.graph.encode_columns`, which fits it to others.
    A graph of complete numbers has the name of its ``table`` instead.

    The graph has ``node_ids``, ``feature_names``, and ``notes`` on how the tables were read; see :func:`from_arrays`.
    Its ``class_names`` are the sorted classes in the type of the labels: integers stay integers. ``unknown`` are the
    labels that count as unknown, and ``counted_unknown`` says how many nodes have each of them.
    """
    categories = categorical if encoder is None else encoder.categories
    text = [(id or "id", 0), (label or "label", None)]
    table = read_table(nodes, "nodes", text=text, categories=categories)
    if table.arrow.num_rows == 0:
        raise InputError(f"{table.name} has no rows: the graph is empty; give at least one node")
    id_column, label = table.find_column(id, "id", 0), table.find_optional(label, "label")
    several = np.iterable(split) and not isinstance(split, str)
    named: Any = split if several else [table.find_optional(split, "split")]  # type: ignore[arg-type]
    splits = [table.check_column(column, "split") for column in named if column is not None]
    ids = as_ids(table, id_column)
    fields: dict[str, Any] = {}
    told: dict[str, Any] = {"notes": []}
    if label is not None:
        labels = read_label_column(table, label, unknown)
        fields |= {"y": labels.numbers, "class_names": labels.classes.tolist()}
        told |= {"unknown": labels.unknown, "counted_unknown": labels.counted_unknown}
        if unknown is None:
            if is_often_unknown(labels.counted_unknown, int((labels.numbers != UNLABELLED).sum())):
                sentence = unknown_in_words(labels.counted_unknown, "unknown=[]")
                warnings.warn(sentence, UnknownLabelsWarning, stacklevel=2)
            if str(UNLABELLED) not in labels.unknown:
                told["notes"].append(f"The labels of {table.name} are 1 and -1: both are classes")
    if name is not None:
        told |= {"node_names": pd.Index(table.as_text(table.check_column(name, "name"))), "name_column": name}
    fields |= _masks(table, splits, fields.get("y"))
    if fold is not None:
        told["fold"] = _folds(table, fold)
    if encoder is None:
        used = {id_column, label, name, fold, *splits} | ({"split"} & table.columns.keys())
        kinds = {"categorical": categorical, "numeric": numeric}
        names = _feature_columns(table, used, features=features, drop=drop, **kinds)
        x = None if categorical else _plain_features(table, names)
        if x is not None:
            made: dict[str, Any] = {"x": x, "feature_names": names, "table": table.name}
        else:
            columns = Columns.read(table, names, **kinds)
            rows = fields["train_mask"][:, 0] if splits else None
            made = ColumnEncoder.fit(columns, rows).attributes(columns)
    else:
        made = encoder.attributes(Columns.for_kinds(table, encoder.kinds))
    found, weights, notes = read_edges(edges, ids, table.name, source=source, target=target, weight=weight)
    told["notes"] += notes
    del table
    pa.default_memory_pool().release_unused()  # Arrow would keep the memory of both tables for later ones
    data = from_arrays(made.pop("x"), directed=directed, **fields, **found)
    data.update({**made, **told, "node_ids": pd.Index(ids.to_numpy())})
    if weights is not None:
        data.weight_column = weights
    return data


def _feature_columns(
    table: Table, used: set[str | None], *, features: Sequence[str] | None, drop: Sequence[str], **kinds: Sequence[str]
) -> list[str]:
    """The names of the feature columns; every column that an argument names must be there."""
    for argument, columns in {"features": features or (), "drop": drop, **kinds}.items():
        for column in columns:
            table.check_column(column, argument)
    used |= set(drop)
    names = [name for name in table.columns if name not in used] if features is None else list(features)
    for name, count in Counter(features or ()).items():
        if name in used or count > 1:
            raise ArgumentError("features", name, "is an id, a label, a split, dropped or named twice: leave it out")
    for argument, columns in kinds.items():
        for column in columns:
            if column not in names:
                raise ArgumentError(argument, column, "is not a feature: it is an id, a label, a split or left out")
            if sum(column in others for others in kinds.values()) > 1:
                raise ArgumentError(argument, column, f"can't be all of {' and '.join(kinds)}: choose one")
    return names


def _plain_features(table: Table, names: Sequence[str]) -> NDArray[np.float32] | None:
    """The features (n × d) of a table of complete numbers; ``None`` if a column is anything else."""
    columns = [table.columns[name] for name in names]
    if any(column.null_count or not any(is_kind(column.type) for is_kind in _NUMERIC) for column in columns):
        return None
    frame = table.arrow.select(list(names)).to_pandas()
    low, high = (found.to_numpy(np.float64) for found in (frame.min(skipna=False), frame.max(skipna=False)))
    if not fit_float32(low, high).all():
        return None  # Columns finds out whether a value is missing, and gives others a unit that fits
    x: NDArray[np.float32] = frame.to_numpy(np.float32, copy=True)
    return x


def _masks(table: Table, names: Sequence[str], y: NDArray[np.int64] | None) -> dict[str, NDArray[np.bool_]]:
    """The masks (n × columns) that some columns name; parts that none of them names are left out."""
    columns = [table.as_text(name) for name in names]
    for name, column in zip(names, columns, strict=True):
        unknown = ~column.isin([*PARTS, ""])
        if unknown.any():
            value = column[unknown].iloc[0]
            raise InputError(f"{table.place(unknown, name)} is {value!r}: write train, val, test or nothing")
        if not (column == "train").any():
            raise InputError(f"{table.name}: column {name!r} marks no node as train; mark some, or name another split")
        if y is None:
            raise InputError(f"{table.name} has a split in column {name!r} but no labels: name the column with classes")
        bad = (column != "") & (y == UNLABELLED)
        if bad.any():
            place = table.place(bad, name)
            raise InputError(f"{place} selects a row without a label: leave it empty there, or give the label")
    parts = {f"{part}_mask": [(column == part).to_numpy(dtype=bool) for column in columns] for part in PARTS}
    return {name: np.stack(masks, axis=1) for name, masks in parts.items() if np.any(masks)}


def _folds(table: Table, name: str) -> Tensor:
    """The number of each node's fold (n), -1 where there is none."""
    column = table.as_text(table.check_column(name, "fold"))
    bad = (column != "") & ~column.str.fullmatch(r"\d{1,9}(\.0)?")
    if bad.any():
        value = column[bad].iloc[0]
        raise InputError(f"{table.place(bad, name)} is {value!r}: the number of a fold is 0, 1, 2, ... or nothing")
    return torch.from_numpy(pd.to_numeric(column).fillna(UNLABELLED).to_numpy(dtype=np.int64, copy=True))
