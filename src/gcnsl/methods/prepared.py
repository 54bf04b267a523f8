"""The inputs of a method's model, computed once from a graph and shared by all runs; new nodes get theirs, too."""

from __future__ import annotations

import copy
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from gcnsl.errors import InputError
from gcnsl.execution import threads_for
from gcnsl.graph.edges import EDGE_FACTS, edge_parts
from gcnsl.methods.registry import Method
from gcnsl.nn.config import Folder, ModelConfig, Precomputed
from gcnsl.nn.preprocessing import mean_weight, normalize_features, relation_count
from gcnsl.sparse import Matrix, stored_entries
from gcnsl.spectral.structural_features import StructuralFeatures

Inputs = tuple[Matrix, ...]
State = tuple[dict[str, Any], dict[str, Tensor], dict[str, Tensor]]
"""The state of what was precomputed, plain values and tensors, and that of the features."""

_PASSES, _WIDTH = 4, 64
"""The products with each input in an epoch, and their usual number of columns, to estimate the work."""
FULL_SHARE = 0.5
"""Columns with at least this share of nonzero values hold quantities; with fewer they may count words."""


@dataclass(frozen=True)
class FeaturePreparation:
    """Structural features for a graph that has none or beside its own, then standardised columns or normalised rows.

    A column is standardised, (x - mean) / std over the training nodes, unless it holds only 0 and 1. By default this is
    done if these columns hold quantities, and never for sparse features. Otherwise rows are normalised: the length of a
    standardised row would mean nothing.

    Attributes:
        config: The model's options.
        structure: Structural features, if the graph has no features, or the method's option asks for them.
        scaling: Mean and scale of the columns (d each), if they are standardised.
    """

    config: ModelConfig
    structure: StructuralFeatures | None = None
    scaling: tuple[Tensor, Tensor] | None = None

    @classmethod
    def fit(cls, config: ModelConfig, graph: Data, rows: Tensor | None) -> FeaturePreparation:
        """Learn from a training graph and its training nodes (n, boolean; ``None`` for all)."""
        wanted = not graph.num_features or getattr(config, "structural_features", False)
        unscaled = cls(config, StructuralFeatures.fit(graph.edge_index, graph.num_nodes) if wanted else None)
        x = unscaled._unscaled(graph)
        if not standardizes(config, x):
            return unscaled
        known = (x if rows is None else x[rows]).double()
        binary, std = _is_binary(x), known.std(dim=0, correction=0)
        scale = torch.where(binary | (std <= 1e-6 * known.abs().amax(dim=0)), 1.0, std)
        return replace(unscaled, scaling=(torch.where(binary, 0.0, known.mean(dim=0)), scale))

    def of(self, graph: Data) -> Tensor:
        """The features of the training graph, or of a graph whose first nodes are those of the training graph."""
        x = self._unscaled(graph)
        if self.scaling is None:
            return normalize_features(x, self.config.feature_norm)
        mean, scale = self.scaling
        return ((x.double() - mean) / scale).float()

    def applied(self, graph: Data) -> Data:
        """The graph with the features that the model reads."""
        graph = copy.copy(graph)
        graph.x = self.of(graph)
        return graph

    def _unscaled(self, graph: Data) -> Tensor:
        x: Tensor = graph.x
        if self.structure is None:
            return x
        structure = self.structure.of(graph.edge_index, graph.num_nodes)
        return structure if not x.shape[1] else torch.cat([x.to_dense(), structure], dim=1)

    def in_words(self, graph: Data) -> str:
        """What is made of the graph's features."""
        columns, own = self._unscaled(graph).shape[1], graph.num_features
        made = f"{own:,}" if self.structure is None else f"{columns - own} structural ones"
        if self.structure is not None:
            made = f"{own:,} and {made}" if own else f"{made}, as the nodes have none"
        if self.scaling is None:
            rows = {"none": "as they are", "row": "rows sum to 1", "l2": "rows have length 1"}
            return f"{made}, {rows[self.config.feature_norm]}"
        mean, scale = self.scaling
        changed = int(((mean != 0) | (scale != 1)).sum())
        return f"{made}, {'' if changed == columns else f'{changed:,} of them '}standardised"

    def state(self) -> dict[str, Tensor]:
        """What was learned, as tensors by name."""
        tensors = {} if self.structure is None else self.structure.state()
        return tensors | dict(zip(("mean", "scale"), self.scaling or (), strict=False))

    @classmethod
    def from_state(cls, config: ModelConfig, tensors: dict[str, Tensor]) -> FeaturePreparation:
        """The preparation with this state."""
        structure = StructuralFeatures.from_state(tensors) if "log_degree" in tensors else None
        return cls(config, structure, (tensors["mean"], tensors["scale"]) if "mean" in tensors else None)


def standardizes(config: ModelConfig, x: Tensor) -> bool:
    """Whether a model's columns are standardised, so that its inputs depend on the training nodes."""
    if config.standardize == "never" or x.layout != torch.strided:
        return False
    others = x[:, ~_is_binary(x)]
    is_full = others.numel() > 0 and float((others != 0).float().mean()) >= FULL_SHARE
    return config.standardize == "always" or is_full


def _is_binary(x: Tensor) -> Tensor:
    """Which columns hold only 0 and 1."""
    return ((x == 0) | (x == 1)).all(dim=0)


def depends_on_split(config: ModelConfig, graph: Data) -> bool:
    """Whether a model's inputs are fitted to the training nodes, and so differ from split to split."""
    if "columns" in graph:
        return True
    has_structure = not graph.num_features or getattr(config, "structural_features", False)
    return config.standardize != "never" if has_structure else standardizes(config, graph.x)


@dataclass(frozen=True)
class Prepared:
    """What a method's model reads of a graph, and what is needed to add new nodes.

    Attributes:
        method: The method.
        graph: The checked graph: ``x`` before normalisation (n × d), ``edge_index``, ``class_names``.
        features: How the features that the model reads are made.
        precomputed: What the method computed beforehand; ``None`` for most methods.
        seed: Seed of the preparation.
        device: The device for training.
    """

    method: Method
    graph: Data
    features: FeaturePreparation
    precomputed: Precomputed | None
    seed: int
    device: torch.device

    @cached_property
    def inputs(self) -> tuple[Matrix, ...]:
        """What the model reads, on the device."""
        return self._made_of(self.features.applied(self.graph), self.precomputed)

    def threads(self) -> AbstractContextManager[None]:
        """A block for passes through the model, in as many threads as the size of its inputs justifies."""
        return threads_for(_PASSES * _WIDTH * sum(map(stored_entries, self.inputs)))

    def build(self) -> nn.Module:
        """A new model for this graph, on the device, with weights drawn from torch's generator."""
        in_channels, out_channels = self.inputs[0].shape[1], len(self.graph.class_names)
        config, relations = self.method.config, relation_count(self.graph)
        more = {"num_relations": relations} if relations > 1 and "kinds" in config.uses else {}
        return config.build(in_channels, out_channels, self.graph.num_nodes, **more).to(self.device)

    def grown_inputs(self, graph: Data) -> tuple[tuple[Matrix, ...], dict[str, Any]]:
        """The inputs for a graph whose first nodes are those of this one, and keyword arguments of the forward pass.

        Weights and directions of edges that the training graph did not have are left out. Raises an InputError if the
        method can't handle new nodes, or uses weights or directions that the graph lacks.
        """
        graph = self._with_known_facts(graph)
        same_edges = all(part.equal(self.graph[name]) for name, part in edge_parts(graph).items())
        if graph.num_nodes == self.graph.num_nodes and same_edges:
            return self.inputs, {}
        config = self.method.config
        normalised = self.features.applied(graph)
        try:
            precomputed = self.precomputed and self.precomputed.grown(normalised)
        except InputError as error:
            raise InputError(f"{self.method.name} {error}") from error
        options = {"known": self.graph.num_nodes} if config.tells_new_nodes else {}
        return self._made_of(normalised, precomputed), options

    def changed_inputs(self, graph: Data, features: FeaturePreparation, precomputed: Precomputed | None) -> Inputs:
        """The inputs for the same nodes with other features or edges, and with these preparations."""
        return self._made_of(features.applied(self._with_known_facts(graph)), precomputed)

    def _made_of(self, ready: Data, precomputed: Precomputed | None) -> tuple[Matrix, ...]:
        return tuple(each.to(self.device) for each in self.method.config.inputs(ready, precomputed, seed=self.seed))

    def _with_known_facts(self, graph: Data) -> Data:
        """A grown graph with the weights and directions of edges that training used, and what was known in training."""
        graph = copy.copy(graph)
        graph.known_nodes = self.graph.num_nodes
        for name, facts in EDGE_FACTS.items():
            known = name in self.graph and facts <= self.method.config.uses
            if known and name not in graph:
                missing = " and ".join(facts)
                raise InputError(
                    f"{self.method.name} was trained with the edges' {missing}, which the grown graph does not have: "
                    f"give it {missing} too"
                )
            if not known and name in graph:
                del graph[name]
        if "edge_weight" in graph or "edge_relations" in graph:
            graph.weight_unit = mean_weight(self.graph)
        return graph

    def state(self) -> State:
        """What :func:`prepare` needs to restore this for the same graph."""
        precomputed = ({}, {}) if self.precomputed is None else self.precomputed.state()
        return *precomputed, self.features.state()


def prepare(
    method: Method,
    graph: Data,
    *,
    rows: Tensor | None = None,
    seed: int,
    device: torch.device,
    root: Folder = None,
    state: State | None = None,
) -> Prepared:
    """Prepare a checked graph for a method: scale features, precompute what it needs, move inputs to the device.

    Args:
        method, graph, device: Of the :class:`Prepared`.
        rows: The training nodes, over which columns are standardised (n, boolean); ``None`` for all nodes.
        seed: Seed of the anchors and of the shifted feature.
        root: A folder to search for dataset files first; used for Geom-GCN's published neighbourhoods only.
        state: The saved state, see :meth:`Prepared.state`, so that nothing need be computed again.
    """
    config = method.config
    with threads_for(_WIDTH * (stored_entries(graph.x) + graph.num_edges)):
        # No name keeps the graph with the features, or there would be two of it when the inputs are made.
        if state is None:
            features = FeaturePreparation.fit(config, graph, rows)
            precomputed = config.precompute(features.applied(graph), seed=seed, root=root)
        else:
            features = FeaturePreparation.from_state(config, state[2])
            precomputed = config.from_state(*state[:2], features.applied(graph))
        prepared = Prepared(method, graph, features, precomputed, seed, device)
        assert prepared.inputs, "making them is a part of the preparation"
    return prepared
