"""A fitted classifier as plain values and tensors, and back."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from gcnsl.auto import AUTO, Blend, ChosenBy
from gcnsl.auto.journal import SavedModel, restored_blend, restored_models, saved_blend, saved_model
from gcnsl.errors import InputError
from gcnsl.files import below
from gcnsl.graph import ColumnEncoder
from gcnsl.graph.checked_graph import Graph
from gcnsl.graph.edges import check_edges, edge_parts
from gcnsl.sparse import from_parts, stored_parts
from gcnsl.storage import load_folder, pack_strings, save_folder, unpack_strings
from gcnsl.training import choose_device
from gcnsl.training.decisions import Threshold

if TYPE_CHECKING:
    from gcnsl.estimator.node_classifier import NodeClassifier

PARTS = ("y", "train_mask", "val_mask", "test_mask")
_KEPT_PARAMETERS = ("validation_fraction", "checkpoint_every", "threshold")
"""Parameters of a classifier that belong to the model; the device, for example, belongs to the place of training."""


def save(classifier: NodeClassifier, path: str | os.PathLike[str], *, overwrite: bool) -> None:
    """Write a fitted classifier to a folder."""
    graph, ids, fitted = classifier.graph_, classifier.node_ids_, classifier.fitted_
    encoder, learned = (None, {}) if classifier.encoder_ is None else classifier.encoder_.state()
    stored = saved_blend(fitted, classifier.options) if isinstance(fitted, Blend) else saved_model(fitted)
    table = getattr(classifier, "leaderboard_", None)
    config: dict[str, Any] = stored.plain | {
        "parameters": {name: np.asarray(getattr(classifier, name)).item() for name in _KEPT_PARAMETERS},
        "shape": list(graph.x.shape),
        "classes": classifier.classes_.tolist(),
        "node_ids": None if ids is None else "integers" if ids.dtype.kind in "iu" else "strings",
        "feature_names": graph.get("feature_names"),
        "weight_column": graph.get("weight_column"),
        "name_column": graph.get("name_column"),
        "unknown": graph.get("unknown"),
        "threshold": classifier.threshold_ and asdict(classifier.threshold_),
        "temperature_of_classifier": classifier.temperature_,  # an ensemble has one of its own
        "encoder": encoder,
    }
    if table is not None:
        config |= {"leaderboard": table.to_dict("records"), "chosen_by": classifier.chosen_by_._asdict()}
    tensors = stored.tensors | stored_parts(graph.x, "x") | edge_parts(graph)
    tensors |= {name: torch.from_numpy(getattr(classifier, f"{name}_")) for name in PARTS}
    tensors |= {f"encoder.{name}": value for name, value in learned.items()}
    for key in ("node_ids", "node_names"):
        if graph.get(key) is not None:
            tensors[key], tensors[f"{key}.ends"] = pack_strings([str(name) for name in graph[key]])
    save_folder(path, config, tensors, overwrite=overwrite)


def load(classifier: NodeClassifier, path: str | os.PathLike[str], *, device: str) -> None:
    """Fill a new classifier with what :func:`save` wrote."""
    chosen = choose_device(device)
    config, tensors = load_folder(path)
    try:
        config, tensors = _of_0_2_0(config, tensors)
        graph, stored = _graph(config, tensors), SavedModel(config, tensors)
        is_blend = config["method"] == AUTO
        fitted = restored_blend(stored, graph, chosen) if is_blend else restored_models([stored], graph, chosen)[0]
        parameters = config["parameters"]
        if unknown := parameters.keys() - set(_KEPT_PARAMETERS):
            raise ValueError(f"it has parameters {', '.join(unknown)}")
        classifier._keep(fitted, tensors["train_mask"], tensors["val_mask"])
        _ = classifier.history_.best  # there is such an epoch
        classifier.threshold_ = config["threshold"] and Threshold(**config["threshold"])
        classifier.temperature_ = config["temperature_of_classifier"]
        classifier.test_mask_ = tensors["test_mask"].numpy()
        if "chosen_by" in config:
            classifier.leaderboard_ = pd.DataFrame(config["leaderboard"])
            classifier.chosen_by_ = ChosenBy(**config["chosen_by"])
    except (KeyError, TypeError, ValueError, RuntimeError, IndexError, AttributeError) as error:
        raise InputError(
            f"{os.fspath(path)} holds no classifier that this version understands ({error}): train and save it again"
        ) from error
    classifier.method, classifier.options = config["method"], config["options"]
    classifier.set_params(**parameters, random_state=config["seed"], device=device)


def _of_0_2_0(config: dict[str, Any], tensors: dict[str, Tensor]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """With what version 0.2.0 has not saved. Its ensembles may have learned from all labels."""
    absent = torch.zeros_like(tensors["train_mask"])
    if "leaderboard" in config and "chosen_by" not in config:
        tensors = tensors | {"train_mask": tensors["train_mask"] | tensors["val_mask"], "val_mask": absent}
    parameters = {"threshold": None} | config["parameters"]
    absent_facts = dict.fromkeys(("threshold", "name_column", "weight_column", "unknown"))
    config = absent_facts | {"temperature_of_classifier": 1.0} | config | {"parameters": parameters}
    return config, {"test_mask": absent} | tensors


def _graph(config: dict[str, Any], tensors: dict[str, Tensor]) -> Graph:
    """The training graph. Since the checksum has matched, only what could be read out of bounds is checked."""
    names = ("edge_index", "edge_weight", "arc_index", "arc_weight")
    parts = {name: tensors[name] for name in names if name in tensors}
    for name in ("edge_index", "arc_index"):
        if name in parts:
            check_edges(parts[name], config["shape"][0])
    y, n = tensors["y"], config["shape"][0]
    masks = [tensors[name] for name in ("train_mask", "val_mask", "test_mask") if name in tensors]
    if y.shape != (n,) or any(mask.shape != (n,) or mask.dtype != torch.bool for mask in masks):
        raise ValueError("y or its masks are not those of its nodes")
    if not (y.min() >= -1 and y.max() < len(config["classes"])):
        raise ValueError("y has other classes")
    graph = Graph(x=from_parts(tensors, "x", tuple(config["shape"])), y=y, **parts)
    graph.class_names = list(config["classes"])
    if config["node_ids"] is not None:
        ids = np.array(unpack_strings(tensors["node_ids"], tensors["node_ids.ends"]))
        graph.node_ids = pd.Index(ids.astype(np.int64) if config["node_ids"] == "integers" else ids)
    if "node_names" in tensors:
        graph.node_names = pd.Index(unpack_strings(tensors["node_names"], tensors["node_names.ends"]))
    if any(key in graph and len(graph[key]) != n for key in ("node_ids", "node_names")):
        raise ValueError("there are not as many ids or names as nodes")
    kept = ("feature_names", "weight_column", "name_column", "unknown")
    graph.update({key: config[key] for key in kept if config[key] is not None})
    if config["encoder"] is not None:
        graph.encoder = ColumnEncoder.from_state(config["encoder"], below("encoder", tensors))
    return graph
