"""The inputs of a method's model, computed once from a graph and shared by all runs."""

from __future__ import annotations

import copy
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from gcnsl.cores import threads_for
from gcnsl.errors import InputError
from gcnsl.graph.edges import EDGE_FACTS, edge_parts
from gcnsl.methods.feature_preparation import FeaturePreparation
from gcnsl.methods.registry import Method
from gcnsl.nn.config import Folder, Precomputed
from gcnsl.nn.preprocessing import mean_weight
from gcnsl.sparse import Matrix, stored_entries

State = tuple[dict[str, Any], dict[str, Tensor], dict[str, Tensor]]
"""The state of what was precomputed, plain values and tensors, and that of the features."""

_PASSES, _WIDTH = 4, 64
"""The products with each input in an epoch, and their usual number of columns, to estimate the work."""


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
        ready = _with_features(self.graph, self.features)
        return _on(self.device, self.method.config.inputs(ready, self.precomputed, seed=self.seed))

    def forget_inputs(self) -> None:
        """Free the memory of the inputs, which are made again when they are next asked for."""
        self.__dict__.pop("inputs", None)

    def threads(self) -> AbstractContextManager[None]:
        """A block for passes through the model, in as many threads as the size of its inputs justifies."""
        return threads_for(_PASSES * _WIDTH * sum(map(stored_entries, self.inputs)))

    def build(self) -> nn.Module:
        """A new model for this graph, on the device, with weights drawn from torch's generator."""
        in_channels, out_channels = self.inputs[0].shape[1], len(self.graph.class_names)
        return self.method.config.build(in_channels, out_channels, self.graph.num_nodes).to(self.device)

    def grown_inputs(self, graph: Data) -> tuple[tuple[Matrix, ...], dict[str, Any]]:
        """The inputs for a graph whose first nodes are those of this one, and keyword arguments of the forward pass.

        Args:
            graph: A checked graph; the features of its first nodes are unchanged. Weights and directions of edges that
                the training graph did not have are left out.

        Raises:
            InputError: If the method can't handle new nodes, or uses weights or directions that the graph lacks.
        """
        graph = self._with_known_facts(graph)
        same_edges = all(part.equal(self.graph[name]) for name, part in edge_parts(graph).items())
        if graph.num_nodes == self.graph.num_nodes and same_edges:
            return self.inputs, {}
        config = self.method.config
        normalised = _with_features(graph, self.features)
        try:
            precomputed = self.precomputed and self.precomputed.grown(normalised)
        except InputError as error:
            raise InputError(f"{self.method.name} {error}") from error
        options = {"known": self.graph.num_nodes} if config.tells_new_nodes else {}
        return _on(self.device, config.inputs(normalised, precomputed, seed=self.seed)), options

    def _with_known_facts(self, graph: Data) -> Data:
        """A grown graph with those weights and directions of edges that the method used in training, and no others.

        It also says how many of its nodes were known in training, and the unit of its weights.
        """
        graph = copy.copy(graph)
        graph.known_nodes = self.graph.num_nodes
        for name, facts in EDGE_FACTS.items():
            known = name in self.graph and facts <= self.method.config.uses
            if known and name not in graph:
                missing = " and ".join(facts)
                was = f"{self.method.name} was trained with the edges' {missing}"
                raise InputError(f"{was}, which the grown graph does not have: give it {missing} too")
            if not known and name in graph:
                del graph[name]
        if "edge_weight" in graph:
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
    """Prepare a graph for a method: scale features, precompute what the method needs, move inputs to the device.

    Args:
        method: The method.
        graph: A checked graph (:func:`gcnsl.graph.from_arrays`).
        rows: The training nodes, over which columns are standardised (n, boolean); ``None`` for all nodes.
        seed: Seed of the anchors and of the shifted feature.
        device: The device for training.
        root: A folder to search for dataset files first; used for Geom-GCN's published neighbourhoods only.
        state: The saved state, see :meth:`Prepared.state`, so that nothing need be computed again.
    """
    config = method.config
    with threads_for(_WIDTH * (stored_entries(graph.x) + graph.num_edges)):
        if state is None:
            features = FeaturePreparation.fit(config, graph, rows)
            precomputed = config.precompute(_with_features(graph, features), seed=seed, root=root)
        else:
            features = FeaturePreparation.from_state(config, state[2], graph)
            precomputed = config.from_state(*state[:2], _with_features(graph, features), seed=seed)
        # No name keeps the graph with these features, or there would be two of it when the inputs are made.
        prepared = Prepared(method, graph, features, precomputed, seed, device)
        assert prepared.inputs, "making them is a part of the preparation"
    return prepared


def _with_features(graph: Data, features: FeaturePreparation) -> Data:
    """The graph with the features that the model reads."""
    graph = copy.copy(graph)
    graph.x = features.of(graph)
    return graph


def _on(device: torch.device, inputs: tuple[Matrix, ...]) -> tuple[Matrix, ...]:
    """The inputs on a device."""
    return tuple(value.to(device) for value in inputs)
