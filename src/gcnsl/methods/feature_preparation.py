"""The features that a model reads, made from those of a graph; what is learned on the way also serves new nodes."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch_geometric.data import Data

from gcnsl.nn import ModelConfig, normalize_features
from gcnsl.structure import StructuralFeatures

FULL_SHARE = 0.5
"""Columns with at least this share of nonzero values hold quantities; with fewer they may count words."""


@dataclass(frozen=True)
class FeaturePreparation:
    """Structural features for a graph that has none, then standardised columns or normalised rows.

    A column is standardised, (x - mean) / std over the training nodes, unless it holds only 0 and 1. By default this is
    done if these columns hold quantities, and never for sparse features. Otherwise rows are normalised: the length of a
    standardised row would mean nothing.

    Attributes:
        config: The model's options.
        structure: Structural features, if the graph has no features.
        mean, scale: Of the columns (d), if they are standardised.
    """

    config: ModelConfig
    structure: StructuralFeatures | None = None
    mean: Tensor | None = None
    scale: Tensor | None = None

    @classmethod
    def fit(cls, config: ModelConfig, graph: Data, rows: Tensor | None) -> FeaturePreparation:
        """Learn from a training graph and its training nodes (n, boolean; ``None`` for all)."""
        structure = None if graph.num_features else StructuralFeatures.fit(graph.edge_index, graph.num_nodes)
        unscaled = cls(config, structure)
        x = unscaled._unscaled(graph)
        if not standardizes(config, x):
            return unscaled
        known = (x if rows is None else x[rows]).double()
        binary = _is_binary(x)
        scale = known.std(dim=0, correction=0)
        scale = torch.where(binary | (scale <= 1e-6 * known.abs().amax(dim=0)), 1.0, scale)
        return cls(config, structure, torch.where(binary, 0.0, known.mean(dim=0)), scale)

    def of(self, graph: Data) -> Tensor:
        """The features of the training graph, or of a graph whose first nodes are those of the training graph."""
        x = self._unscaled(graph)
        if self.mean is None or self.scale is None:
            return normalize_features(x, self.config.feature_norm)
        return ((x.double() - self.mean) / self.scale).float()

    def _unscaled(self, graph: Data) -> Tensor:
        x: Tensor = graph.x
        return x if self.structure is None else self.structure.of(graph.edge_index, graph.num_nodes)

    def in_words(self, graph: Data) -> str:
        """What is made of the graph's features."""
        columns = self._unscaled(graph).shape[1]
        made = f"{columns:,}" if self.structure is None else f"{columns} structural ones, as the nodes have none"
        if self.mean is None:
            rows = {"none": "as they are", "row": "rows sum to 1", "l2": "rows have length 1"}
            return f"{made}, {rows[self.config.feature_norm]}"
        changed = int(((self.mean != 0) | (self.scale != 1)).sum())
        return f"{made}, {'' if changed == columns else f'{changed:,} of them '}standardised"

    def state(self) -> dict[str, Tensor]:
        """What was learned, as tensors by name."""
        tensors = {} if self.structure is None else self.structure.state()
        scaling = {} if self.mean is None or self.scale is None else {"mean": self.mean, "scale": self.scale}
        return tensors | scaling

    @classmethod
    def from_state(cls, config: ModelConfig, tensors: dict[str, Tensor], graph: Data) -> FeaturePreparation:
        """The preparation with this state."""
        structure = None if graph.num_features else StructuralFeatures.from_state(tensors)
        return cls(config, structure, tensors.get("mean"), tensors.get("scale"))


def standardizes(config: ModelConfig, x: Tensor) -> bool:
    """Whether a model's columns are standardised, so that its inputs depend on the training nodes."""
    if config.standardize == "never" or x.layout != torch.strided:
        return False
    if config.standardize == "always":
        return True
    others = x[:, ~_is_binary(x)]
    return others.numel() > 0 and float((others != 0).float().mean()) >= FULL_SHARE


def _is_binary(x: Tensor) -> Tensor:
    """Which columns hold only 0 and 1."""
    return ((x == 0) | (x == 1)).all(dim=0)


def depends_on_split(config: ModelConfig, graph: Data) -> bool:
    """Whether a model's inputs are fitted to the training nodes, and so differ from split to split."""
    if "columns" in graph:
        return True
    return standardizes(config, graph.x) if graph.num_features else config.standardize != "never"
