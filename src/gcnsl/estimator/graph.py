"""The graph that a classifier was trained on, and what it takes to add nodes to it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import scipy.sparse as sp
import torch
from torch import Tensor
from torch_geometric.data import Data

from gcnsl.sparse import csr_tensor
from gcnsl.errors import InputError
from gcnsl.graph import from_arrays
from gcnsl.nn import GCNSLConfig, Input, normalize_features
from gcnsl.spectral import SpectralFeatures


@dataclass(frozen=True)
class TrainingGraph:
    """A graph as the model reads it.

    Attributes:
        config: The model's hyper-parameters, which say how the graph is prepared.
        seed: Of the anchors and of the shifted feature.
        x: Features as given (n × d, dense or CSR).
        edge_index: Simple and undirected (2 × E).
        spectral: F (n × c).
        transformer: What made F, for nodes to come; ``None`` without spectral features.
    """

    config: GCNSLConfig
    seed: int
    x: Tensor
    edge_index: Tensor
    spectral: Tensor
    transformer: SpectralFeatures | None

    @classmethod
    def of(cls, config: GCNSLConfig, data: Data, *, seed: int) -> TrainingGraph:
        """Prepare a checked graph, and keep what made its spectral features."""
        if not config.n_components:
            return cls(config, seed, data.x, data.edge_index, torch.empty(len(data.x), 0), None)
        transformer = config.spectral_features(seed)
        spectral = transformer.fit_transform(normalize_features(data.x, config.feature_norm))
        # Products with a transposed layout are rounded otherwise: keep the one that comes back from a file.
        extension = transformer.extension_
        transformer.extension_ = replace(extension, weight=extension.weight.contiguous())
        return cls(config, seed, data.x, data.edge_index, spectral.contiguous(), transformer)

    @cached_property
    def inputs(self) -> tuple[Input, ...]:
        """What the model reads: X shifted, F and Â."""
        x = normalize_features(self.x, self.config.feature_norm)
        return self.config.inputs(x, self.spectral, self.edge_index, seed=self.seed)

    def grown_inputs(self, X: Any, edge_index: Any) -> tuple[Input, ...]:
        """The same of a graph that begins with this one's nodes and goes on with new ones.

        F of the training nodes stays what it is; new nodes get theirs by extension.

        Raises:
            InputError: If the first rows of X are not the training nodes.
        """
        data = from_arrays(X, edge_index)
        known, features = self.x.shape
        order = "a grown graph holds the training nodes first, in their order, then the new ones"
        if data.x.shape[0] < known or data.x.shape[1] != features:
            raise InputError(
                f"X has shape {tuple(data.x.shape)}, and training had {known} nodes with {features} features: {order}"
            )
        changed = (to_scipy(_rows(data.x, 0, known)) != to_scipy(self.x)).nonzero()[0]
        if len(changed):
            raise InputError(f"X[{changed.min()}] is not what it was in training: {order}")
        x = normalize_features(data.x, self.config.feature_norm)
        spectral = self.spectral
        if self.transformer is None:
            spectral = torch.empty(len(x), 0)
        elif len(x) > known:
            spectral = torch.cat([spectral, self.transformer.transform(_rows(x, known, len(x)))])
        return self.config.inputs(x, spectral, data.edge_index, seed=self.seed)


def _rows(x: Tensor, begin: int, end: int) -> Tensor:
    """The rows from ``begin`` up to ``end`` of a dense or CSR matrix."""
    if x.layout != torch.sparse_csr:
        return x[begin:end]
    start = x.crow_indices()[begin : end + 1]
    part = slice(int(start[0]), int(start[-1]))
    return csr_tensor(start - start[0], x.col_indices()[part], x.values()[part], (end - begin, x.shape[1]))


def to_scipy(x: Tensor) -> sp.csr_array:
    """Features as a SciPy matrix, dense ones too."""
    if x.layout != torch.sparse_csr:
        return sp.csr_array(x.numpy())
    return sp.csr_array((x.values().numpy(), x.col_indices().numpy(), x.crow_indices().numpy()), shape=tuple(x.shape))
