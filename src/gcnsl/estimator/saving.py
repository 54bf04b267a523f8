"""A fitted classifier as plain values and tensors, and back."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from gcnsl.sparse import csr_tensor
from gcnsl.errors import InputError
from gcnsl.estimator.graph import TrainingGraph
from gcnsl.graph.checks import check_edges
from gcnsl.nn import GCNSLConfig, normalize_features
from gcnsl.spectral import SpectralFeatures
from gcnsl.spectral.gaussian import GaussianMap
from gcnsl.spectral.linear import LinearMap
from gcnsl.spectral.reading import as_rows
from gcnsl.storage import load_folder, pack_strings, save_folder, unpack_strings
from gcnsl.training import History, choose_device

if TYPE_CHECKING:
    from gcnsl.estimator.classifier import GCNSLClassifier

NOT_SAVED = ("device", "checkpoint", "on_epoch")
"""Parameters that belong to the place of training, not to the model."""


def save(classifier: GCNSLClassifier, path: str | os.PathLike[str], *, overwrite: bool) -> None:
    """Write a fitted classifier to a folder."""
    graph, ids = classifier.graph_, classifier.node_ids_
    parameters = {name: value for name, value in classifier.get_params().items() if name not in NOT_SAVED}
    parameters["random_state"] = graph.seed
    config: dict[str, Any] = {
        "parameters": {name: _plain(value) for name, value in parameters.items()},
        "shape": list(graph.x.shape),
        "classes": classifier.classes_.tolist(),
        "node_ids": None if ids is None else "integers" if ids.dtype.kind in "iu" else "texts",
        "history": classifier.history_.to_dict(),
    }
    tensors = {f"model.{name}": value for name, value in classifier.model_.state_dict().items()}
    tensors |= feature_tensors(graph.x)
    tensors |= {"edge_index": graph.edge_index, "spectral": graph.spectral}
    for name in ("y", "train_mask", "val_mask"):
        tensors[name] = torch.from_numpy(getattr(classifier, f"{name}_"))
    if graph.transformer is not None:
        config["extension"], extension = _take_apart(graph.transformer)
        tensors |= extension
    if ids is not None:
        tensors["node_ids"], tensors["node_ids.ends"] = pack_strings([str(name) for name in ids])
    save_folder(path, config, tensors, overwrite=overwrite)


def load(classifier: GCNSLClassifier, path: str | os.PathLike[str], *, device: str) -> None:
    """Fill a new classifier with what :func:`save` wrote."""
    chosen = choose_device(device)
    config, tensors = load_folder(path)
    try:
        _fill(classifier, config, tensors)
    except (KeyError, TypeError, ValueError, RuntimeError, IndexError, AttributeError) as error:
        raise InputError(
            f"{os.fspath(path)} holds no classifier that this version understands ({error}): train and save it again"
        ) from error
    classifier.device = device
    classifier.model_.to(chosen)


def _fill(classifier: GCNSLClassifier, config: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    classifier.set_params(**config["parameters"])
    model_config: GCNSLConfig = classifier._values_of(GCNSLConfig)
    x, seed = _features(tensors, config["shape"]), int(config["parameters"]["random_state"])
    transformer = None
    if model_config.n_components:
        transformer = model_config.spectral_features(seed)
        _put_together(transformer, config["extension"], tensors, normalize_features(x, model_config.feature_norm))
    _check_sizes(tensors, x.shape[0], x.shape[1], model_config.n_components)
    model = model_config.build(Data(x=x, class_names=config["classes"]))
    model.load_state_dict({k.removeprefix("model."): v for k, v in tensors.items() if k.startswith("model.")})

    classifier.graph_ = TrainingGraph(model_config, seed, x, tensors["edge_index"], tensors["spectral"], transformer)
    classifier.model_ = model.eval()
    classifier.classes_ = np.array(config["classes"])
    classifier.n_features_in_ = x.shape[1]
    classifier.history_ = History.from_dict(config["history"])
    classifier.y_, classifier.train_mask_, classifier.val_mask_ = (
        tensors[name].numpy() for name in ("y", "train_mask", "val_mask")
    )
    classifier.node_ids_ = None
    if config["node_ids"] is not None:
        ids = np.array(unpack_strings(tensors["node_ids"], tensors["node_ids.ends"]))
        classifier.node_ids_ = ids.astype(np.int64) if config["node_ids"] == "integers" else ids


def _check_sizes(tensors: dict[str, Tensor], n: int, d: int, c: int) -> None:
    """Refuse what would be read beyond its end."""
    check_edges(tensors["edge_index"], n)
    sizes = {"spectral": (n, c), "y": (n,), "train_mask": (n,), "val_mask": (n,)}
    sizes |= {"extension.total": (d,)} if "extension.total" in tensors else {}
    for name, size in sizes.items():
        if tensors[name].shape != size:
            raise ValueError(f"{name} has shape {tuple(tensors[name].shape)}, not {size}")


def feature_tensors(x: Tensor) -> dict[str, Tensor]:
    """Features as strided tensors by name: sparse ones stay sparse."""
    if x.layout != torch.sparse_csr:
        return {"x": x}
    return {"x.start": x.crow_indices(), "x.column": x.col_indices(), "x.value": x.values()}


def _features(tensors: dict[str, Tensor], shape: list[int]) -> Tensor:
    if "x" in tensors:
        return tensors["x"]
    parts = tensors["x.start"], tensors["x.column"], tensors["x.value"]
    with torch.sparse.check_sparse_tensor_invariants():  # type: ignore[no-untyped-call]
        return csr_tensor(*parts, (shape[0], shape[1]))


def _take_apart(transformer: SpectralFeatures) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """A fitted map to spectral features: anchors and training rows are rows of X, so that their numbers will do."""
    extension = transformer.extension_
    tensors = {"extension.weight": extension.weight, "extension.eigenvalues": extension.eigenvalues}
    if isinstance(extension, GaussianMap):
        return {"sigma": extension.sigma}, tensors
    tensors["extension.total"] = extension.total
    if extension.anchors is not None:
        tensors["extension.anchors"] = torch.from_numpy(transformer.anchors_)
    return {"signed": extension.signed}, tensors


def _put_together(transformer: SpectralFeatures, plain: dict[str, Any], tensors: dict[str, Tensor], x: Tensor) -> None:
    """Make the transformer what it was when it was fitted to these features (n × d, normalised)."""
    rows = as_rows(x)
    weight, eigenvalues = tensors["extension.weight"], tensors["extension.eigenvalues"]
    if "sigma" in plain:
        transformer.extension_ = GaussianMap(weight, rows, plain["sigma"], eigenvalues)
        transformer.sigma_ = plain["sigma"]
    else:
        numbers = tensors.get("extension.anchors")
        anchors = None if numbers is None else rows.take(numbers)
        transformer.extension_ = LinearMap(weight, tensors["extension.total"], anchors, plain["signed"], eigenvalues)
        if numbers is not None:
            transformer.anchors_ = numbers.numpy()
    transformer.eigenvalues_ = eigenvalues.numpy()
    transformer.singular_values_ = transformer.eigenvalues_**0.5
    transformer.n_features_in_ = x.shape[1]


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
