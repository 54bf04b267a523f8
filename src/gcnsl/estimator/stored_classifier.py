"""A fitted classifier as plain values and tensors, and back."""

from __future__ import annotations

import os
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from gcnsl.checks import UNLABELLED
from gcnsl.errors import InputError
from gcnsl.graph import ColumnEncoder
from gcnsl.graph.edges import check_edges, check_weights, edge_parts
from gcnsl.graph.labels import number_classes
from gcnsl.graph.sources import check_features, check_ids
from gcnsl.selection import AUTO, Blend, ChosenBy
from gcnsl.selection.leaderboard import COLUMNS, NUMBERS
from gcnsl.selection.stored_member import Stored, below, restored_blend, restored_fits, stored_blend, stored_fit
from gcnsl.sparse import from_parts, stored_parts
from gcnsl.storage import load_folder, pack_strings, save_folder, unpack_strings
from gcnsl.training import METRICS, choose_device

if TYPE_CHECKING:
    from gcnsl.estimator.node_classifier import NodeClassifier

PARTS = ("y", "train_mask", "val_mask")
_KEPT_PARAMETERS = ("validation_fraction", "checkpoint_every")
"""Parameters of a classifier that belong to the model; the device, for example, belongs to the place of training."""


def save(classifier: NodeClassifier, path: str | os.PathLike[str], *, overwrite: bool) -> None:
    """Write a fitted classifier to a folder."""
    graph, ids, fitted = classifier.graph_, classifier.node_ids_, classifier.fitted_
    encoder, learned = (None, {}) if classifier.encoder_ is None else classifier.encoder_.state()
    stored = stored_blend(fitted, classifier.options) if isinstance(fitted, Blend) else stored_fit(fitted)
    table = getattr(classifier, "leaderboard_", None)
    config: dict[str, Any] = stored.plain | {
        "parameters": {name: np.asarray(getattr(classifier, name)).item() for name in _KEPT_PARAMETERS},
        "shape": list(graph.x.shape),
        "classes": classifier.classes_.tolist(),
        "node_ids": None if ids is None else "integers" if ids.dtype.kind in "iu" else "strings",
        "feature_names": graph.get("feature_names"),
        "weight_column": graph.get("weight_column"),
        "unknown": graph.get("unknown"),
        "encoder": encoder,
    }
    if table is not None:
        config |= {"leaderboard": table.to_dict("records"), "chosen_by": classifier.chosen_by_._asdict()}
    tensors = stored.tensors | stored_parts(graph.x, "x") | edge_parts(graph)
    tensors |= {name: torch.from_numpy(getattr(classifier, f"{name}_")) for name in PARTS}
    tensors |= {f"encoder.{name}": value for name, value in learned.items()}
    if ids is not None:
        tensors["node_ids"], tensors["node_ids.ends"] = pack_strings([str(name) for name in ids])
    save_folder(path, config, tensors, overwrite=overwrite)


def load(classifier: NodeClassifier, path: str | os.PathLike[str], *, device: str) -> None:
    """Fill a new classifier with what :func:`save` wrote."""
    chosen = choose_device(device)
    config, tensors = load_folder(path)
    try:
        graph, stored = _graph(config, tensors), Stored(config, tensors)
        is_blend = config["method"] == AUTO
        fitted = restored_blend(stored, graph, chosen) if is_blend else restored_fits([stored], graph, chosen)[0]
        classes, train, val = _classes(config["classes"]), tensors["train_mask"], tensors["val_mask"]
        table = chosen_by = None
        if "chosen_by" in config:
            table, chosen_by = _leaderboard(config["leaderboard"]), _chosen_by(config["chosen_by"])
        elif "leaderboard" in config:  # before 0.3.0 its models may have learned from all labels
            train, val = train | val, torch.zeros_like(val)
        parameters = {name: config["parameters"].pop(name) for name in _KEPT_PARAMETERS}
        if config["parameters"]:
            raise ValueError(f"it has parameters {', '.join(config['parameters'])}")
    except (KeyError, TypeError, ValueError, RuntimeError, IndexError, AttributeError) as error:
        raise InputError(
            f"{os.fspath(path)} holds no classifier that this version understands ({error}): train and save it again"
        ) from error
    classifier.method, classifier.options = config["method"], config["options"]
    classifier.set_params(**parameters, random_state=config["seed"], device=device)
    classifier._keep(fitted, classes, train, val)
    if table is not None and chosen_by is not None:
        classifier.leaderboard_, classifier.chosen_by_ = table, chosen_by


def _classes(found: list[Any]) -> NDArray[Any]:
    """The classes (C), in the order in which they are numbered."""
    numbers, classes, *_ = number_classes(found, unknown=())
    if len(classes) < len(found):
        raise ValueError(f"its classes are {found}")
    return classes[numbers]


def _leaderboard(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """What was tried by an automatic selection."""
    table = pd.DataFrame(rows)
    kinds = {name: dict if name == "options" else Real if name in NUMBERS else str for name in COLUMNS}
    if (*table,) != COLUMNS or not all(isinstance(cell, kinds[name]) for name in table for cell in table[name]):
        raise ValueError("its leaderboard has columns or values that no leaderboard has")
    return table


def _chosen_by(given: dict[str, Any]) -> ChosenBy:
    """What that was compared by."""
    found = ChosenBy(**given)
    kinds = (str, int, int, int, bool)
    if found.metric not in METRICS or not all(map(isinstance, found, kinds)):
        raise ValueError(f"chosen_by is {given}")
    return found


def _graph(config: dict[str, Any], tensors: dict[str, Tensor]) -> Data:
    """The training graph; whatever would be read beyond its end is refused."""
    n, d = config["shape"]
    x = from_parts(tensors, "x", (n, d))
    for name, tensor, size in (("x", x, (n, d)), *((name, tensors[name], (n,)) for name in PARTS)):
        if tensor.shape != size:
            raise ValueError(f"{name} has shape {tuple(tensor.shape)}, not {size}")
    _check_values(x, tensors, len(config["classes"]))
    graph = Data(x=x, y=tensors["y"], **_edges(tensors, n))
    graph.class_names = list(config["classes"])
    if config.get("unknown") is not None:
        graph.unknown = [str(label) for label in config["unknown"]]
    if config["node_ids"] is not None:
        ids = np.array(unpack_strings(tensors["node_ids"], tensors["node_ids.ends"]))
        graph.node_ids = check_ids(ids.astype(np.int64) if config["node_ids"] == "integers" else ids, n)
    names, weight_column = config["feature_names"], config["weight_column"]
    if names is not None and (len(names) != d or not all(isinstance(name, str) for name in names)):
        raise ValueError(f"feature_names are not the names of {d} features")
    if not isinstance(weight_column, str | None):
        raise ValueError(f"weight_column is {weight_column!r}")
    graph.update({key: config[key] for key in ("feature_names", "weight_column") if config[key] is not None})
    if config["encoder"] is not None:
        graph.encoder = ColumnEncoder.from_state(config["encoder"], below("encoder", tensors))
        if len(graph.encoder.feature_names) != d:
            raise ValueError(f"its encoder makes {len(graph.encoder.feature_names)} features, not {d}")
    return graph


def _check_values(x: Tensor, tensors: dict[str, Tensor], num_classes: int) -> None:
    """Refuse features, labels and masks with types or values that no training graph has."""
    y, train, val = (tensors[name] for name in PARTS)
    if x.dtype != torch.float32:
        raise ValueError(f"x has type {x.dtype}")
    check_features(x)
    if y.dtype != torch.int64 or not ((y >= UNLABELLED) & (y < num_classes)).all():
        raise ValueError("y holds other values than class numbers")
    if {train.dtype, val.dtype} != {torch.bool}:
        raise ValueError("its masks are not boolean")
    if not train.any() or (train & val).any() or (y[train | val] == UNLABELLED).any():
        raise ValueError("its masks do not divide labelled nodes")


def _edges(tensors: dict[str, Tensor], num_nodes: int) -> dict[str, Tensor]:
    """The edges, and the arcs and weights that were saved with them."""
    parts = {}
    for index, weight in (("edge_index", "edge_weight"), ("arc_index", "arc_weight")):
        if index in tensors or index == "edge_index":
            check_edges(tensors[index], num_nodes)
            parts[index] = tensors[index]
        if weight in tensors:
            check_weights(tensors[weight], tensors[index].shape[1])
            parts[weight] = tensors[weight]
    return parts
