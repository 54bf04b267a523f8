"""A checked graph from tables of nodes, with one row per node, and tables of edges, with one row per edge.

Columns stay in Arrow from the file to the last check, so that loading a table of millions of rows takes little longer
than reading it. Messages name the table, the row and the column; the first row below the header is row 1.
"""

import os
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from gcnsl.checks import UNLABELLED
from gcnsl.errors import ArgumentError, InputError
from gcnsl.graph.column_encoder import ColumnEncoder, fit_float32
from gcnsl.graph.column_report import summarize_edge_columns
from gcnsl.graph.columns import Columns, is_of_edges, left_out_kind
from gcnsl.graph.edge_columns import edge_columns
from gcnsl.graph.edges import edges_by_relation
from gcnsl.graph.labels import UnknownLabelsWarning, is_often_unknown, read_label_column, unknown_in_words
from gcnsl.graph.linked_tables import KIND, read_tables, read_weights
from gcnsl.graph.masks import PARTS
from gcnsl.graph.relations import Relations
from gcnsl.graph.sources import from_arrays
from gcnsl.graph.tables import Table, Written
from gcnsl.graph.wide_features import read_wide

Source = str | os.PathLike[str] | Any
"""A path (see :mod:`gcnsl.graph.tables` for the formats), or a table of pandas, polars or pyarrow."""

_NUMERIC = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean)


def from_tables(
    nodes: Source | Sequence[Source],
    edges: Source | Sequence[Source],
    *,
    id: str | None = None,  # noqa: A002 - the usual name of the column
    label: str | None = None,
    name: str | None = None,
    split: str | Sequence[str] | None = None,
    fold: str | None = None,
    features: Sequence[str] | None = None,
    wide: Any = None,
    drop: Sequence[str] = (),
    categorical: Sequence[str] = (),
    numeric: Sequence[str] = (),
    unknown: Sequence[Any] | None = None,
    encoder: ColumnEncoder | None = None,
    source: str | None = None,
    target: str | None = None,
    weight: str | Literal[False] | None = None,
    edge_type: str | None = None,
    directed: bool = False,
    separator: str | None = None,
    encoding: str | None = None,
    no_header: str | None = None,
) -> Data:
    """Read a graph from a table of nodes and a table of edges, or several of each.

    Args:
        nodes: One row per node, with an id, features of any kind and, where it is known, a class. Several tables are
            joined by their ids.
        edges: One row per edge, with the ids of its two ends. Several tables are several kinds of edges, as with
            ``edge_type``.
        id: Column of ``nodes`` with the ids; by default ``id``, ``~id``, ``node_id`` or the like, else the first
            column. If that can't be, rows are counted from 0.
        label: Column of ``nodes`` with the classes, names or integers; by default ``label`` if there is one.
        name: Column of ``nodes`` that says what to call them where people read of them; it is no feature.
        split: Column of ``nodes`` with ``train``, ``val``, ``test`` or nothing; by default ``split`` if there is one.
            Several columns are the splits of as many runs.
        fold: Column of ``nodes`` with the number of each node's fold, empty for a node that is never tested; it
            becomes ``data.fold`` (n), for :func:`gcnsl.datasets.with_folds`.
        features: Columns of ``nodes`` with the features; by default all remaining columns.
        wide: Further features that are mostly 0: a matrix (n × d) or its file (``.npz``, ``.npy``), with one row for
            each row of ``nodes``; or a table with the columns ``node``, ``feature`` and perhaps ``value``.
        drop: Columns of ``nodes`` and ``edges`` that are not used.
        categorical: Columns that are categories even if they look like numbers, such as codes.
        numeric: Columns that are numbers even if they are text.
        unknown: Labels of nodes whose class is not known, besides those that are missing; by default -1, ``NA``,
            ``null`` and the like (:data:`gcnsl.graph.labels.UNKNOWN`), with a warning if many nodes have one.
        encoder: The encoder of a trained model, to read a table for it. The encoder knows the columns and their kinds,
            so that ``features``, ``drop``, ``categorical`` and ``numeric`` are ignored.
        source: Column of ``edges`` with one end; by default ``source``, ``from``, ``src``, ``u`` or the like, else
            the first column.
        target: Column of ``edges`` with the other end; likewise.
        weight: Column of ``edges`` with weights; by default ``weight`` if there is one that holds numbers. ``False``
            for none. An edge of weight 0 is none; a column with negative numbers is an edge column like any other, and
            positive and negative edges are two kinds.
        edge_type: Column of ``edges`` with their kinds, which is a category whatever it looks like. Some methods tell
            kinds of edges apart: see :mod:`gcnsl.graph.relations`.
        directed: Whether edges lead from ``source`` to ``target``, and the directions are kept too.
        separator, encoding: How text files are written; guessed by default.
        no_header: Which text files have no header: ``nodes``, ``edges``, ``both`` or ``none``; guessed by default.

    All columns of the edges but the weights become columns of the nodes at their ends: see
    :mod:`gcnsl.graph.edge_columns`.
    Complete numeric columns are features as they are. If there are any others, ``x`` has all columns as the graph's
    ``encoder`` encodes them: see :mod:`gcnsl.graph.columns` for the kinds of columns, and
    :mod:`gcnsl.graph.column_encoder` for what becomes of each. It is fitted to the training rows, or to all rows if
    there is no split; the graph keeps the ``columns`` for :func:`gcnsl.graph.encode_columns`, which fits it to others.
    A graph of complete numbers has the name of its ``table`` instead.

    The graph has ``node_ids``, ``feature_names``, and ``notes`` on how the tables were read; see :func:`from_arrays`.
    Its ``class_names`` are the sorted classes in the type of the labels: integers stay integers. ``unknown`` are the
    labels that count as unknown, and ``counted_unknown`` says how many nodes have each of them.
    """
    written = Written(separator, encoding, no_header)
    texts = [label or "label", *(categorical if encoder is None else encoder.categories)]
    several = np.iterable(split) and not isinstance(split, str)
    named: list[Any] = list(split) if several else [split]  # type: ignore[arg-type]
    table, id_column, ids, edge_table, ends, notes = read_tables(
        *(list(each) if isinstance(each, list | tuple) else [each] for each in (nodes, edges)),
        id_column=id,
        texts=texts,
        others={label or "label", "split", name, fold, *named},
        ends=(source, target),
        written=written,
    )
    label = table.find_label(label)
    found = named if several else [table.find_optional(named[0], "split")]
    splits = [table.check_column(column, "split") for column in found if column is not None]
    fields, told = ({}, {}) if label is None else _labels(table, label, unknown, notes)
    if name is not None:
        told |= {"node_names": pd.Index(table.as_text(table.check_column(name, "name"))), "name_column": name}
    fields |= _masks(table, splits, fields.get("y"))
    told["notes"] = notes
    if fold is not None:
        told["fold"] = _folds(table, fold)
    edge_table, ends, values, weights = read_weights(edge_table, ends, weight, notes)
    weights, signed = (None, weights) if values is None else (weights, None)
    fields["edge_weight"], told["weight_column"] = values, weights
    more = None if wide is None else read_wide(wide, ids, table.name, written)
    if encoder is None:
        used = {id_column, label, name, fold, *splits} | ({"split"} & table.columns.keys())
        hidden = {*drop, weights} | ({"weight"} if weight is False else set())
        rows = fields["train_mask"][:, 0] if splits else None
        kind = edge_type or (KIND if isinstance(edges, list | tuple) and len(edges) > 1 else None)
        given: dict[str, Sequence[str]] = {"categorical": categorical, "numeric": numeric}
        how: dict[str, Any] = {"kinds_by": (kind, signed), "weighted": values is not None, "drop": drop, **given}
        facts = _edge_facts(table, edge_table, hidden, edge_type, **how)
        made = edge_columns(facts, ends, len(ids), directed=directed) if facts.used else {}
        told["edge_columns"] = summarize_edge_columns(facts, made)
        of_nodes = {argument: [c for c in columns if c in table.columns] for argument, columns in given.items()}
        names = _feature_columns(table, used | set(drop), features=features, **of_nodes)
        x = None if categorical or made or more or facts.relations else _plain_features(table, names)
        if x is not None:
            told |= {"x": x, "feature_names": names, "table": table.name}
        else:
            of_nodes["numeric"] += made
            columns = Columns.read(table.with_columns(made), [*names, *made], **of_nodes)
            columns = replace(columns, edge_kinds=facts.used if made else {}, wide=more, relations=facts.relations)
            told |= ColumnEncoder.fit(columns, rows).attributes(columns)
    else:
        columns = _read_as(encoder, table, edge_table, ends, directed=directed)
        told |= encoder.attributes(replace(columns, wide=more))
    kinds = "columns" in told and told["columns"].relations and told["columns"].relations.of(edge_table, values)
    node_ids = pd.Index(ids.to_numpy())
    del table, edge_table, ids
    pa.default_memory_pool().release_unused()  # Arrow would keep the memory of the tables for later ones
    data = from_arrays(told.pop("x"), ends, directed=directed, **fields)
    data.update(edges_by_relation(data, ends, *kinds) if kinds else {})
    data.update({key: value for key, value in told.items() if value is not None} | {"node_ids": node_ids})
    return data


def _read_as(
    encoder: ColumnEncoder, table: Table, edge_table: Table, ends: NDArray[np.int32], *, directed: bool
) -> Columns:
    """The columns that an encoder was fitted to, of other tables."""
    made = {}
    if encoder.edge_kinds:
        facts = Columns.for_kinds(edge_table, encoder.edge_kinds)
        made = edge_columns(facts, ends, table.arrow.num_rows, directed=directed, everything=True)
    for name in filter(is_of_edges, encoder.kinds.keys() - made.keys()):
        other = next((each for each in made if each.startswith(f"{name.partition('=')[0]}=")), None)
        if other is not None:  # no edge has this level any more
            made[name] = pc.multiply(made[other], 0.0)
    columns = Columns.for_kinds(table.with_columns(made), encoder.kinds)
    return replace(columns, edge_kinds=encoder.edge_kinds, relations=encoder.relations)


def _labels(
    table: Table, label: str, unknown: Sequence[Any] | None, notes: list[str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The arguments of :func:`from_arrays` that come of a column of labels, and what else is told of them."""
    labels = read_label_column(table, label, unknown)
    if unknown is None:
        if is_often_unknown(labels.counted_unknown, int((labels.numbers != UNLABELLED).sum())):
            sentence = unknown_in_words(labels.counted_unknown, "unknown=[]")
            warnings.warn(sentence, UnknownLabelsWarning, stacklevel=3)
        if str(UNLABELLED) not in labels.unknown:
            notes.append(f"The labels of {table.name} are 1 and -1: both are classes")
    told = {"unknown": labels.unknown, "counted_unknown": labels.counted_unknown}
    return {"y": labels.numbers, "class_names": labels.classes.tolist()}, told


def _edge_facts(
    table: Table,
    edge_table: Table,
    hidden: set[str | None],
    edge_type: str | None,
    *,
    kinds_by: tuple[str | None, str | None],
    weighted: bool,
    **named: Sequence[str],
) -> Columns:
    """The columns of edges and their relations; every column that an argument names must be in one of the tables."""
    for argument, names in named.items():
        for name in names:
            if name not in edge_table.columns:
                table.check_column(name, argument)
    kinds = {
        argument: [name for name in named[argument] if name not in hidden] for argument in ("categorical", "numeric")
    }
    facts = Columns.of_edges(edge_table, hidden, edge_type=edge_type, **kinds)
    kind, signed = (None if name in named["drop"] else name for name in kinds_by)
    return replace(facts, relations=Relations.find(edge_table, kind, signed, weighted=weighted))


def _feature_columns(
    table: Table, used: set[str | None], *, features: Sequence[str] | None, **kinds: Sequence[str]
) -> list[str]:
    """The names of the feature columns; those that the caller named must be there."""
    for column in features or ():
        table.check_column(column, "features")
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
    if any(left_out_kind(name, frame[name].to_numpy()) for name in names):
        return None
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
