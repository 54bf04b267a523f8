"""A graph as a method reads it: made once, on the device of training, and used by every run."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from gcnsl.errors import InputError
from gcnsl.methods.registry import Folder, Method
from gcnsl.nn import Precomputed, normalize_features
from gcnsl.sparse import Matrix, slice_rows, to_scipy


@dataclass(frozen=True)
class Prepared:
    """What a model reads of a graph, and what it takes to read new nodes too.

    Attributes:
        method: The method.
        graph: The checked graph: ``x`` as it was given (n × d), ``edge_index``, ``class_names``.
        precomputed: What the method made of it beforehand; ``None`` for most methods.
        inputs: What the model reads, on the device.
        seed: Of whatever was drawn.
        device: Where training takes place.
    """

    method: Method
    graph: Data
    precomputed: Precomputed | None
    inputs: tuple[Matrix, ...]
    seed: int
    device: torch.device

    def build(self) -> nn.Module:
        """A model for this graph on its device, the weights drawn from torch's generator."""
        graph = self.graph
        return self.method.config.build(graph.num_features, len(graph.class_names)).to(self.device)

    def grown_inputs(self, graph: Data) -> tuple[tuple[Matrix, ...], dict[str, Any]]:
        """What the model reads of a graph that begins with this one's nodes, and further arguments of its forward pass.

        Args:
            graph: Checked; its first nodes are those of the training graph, with the features they had.
        """
        if graph.num_nodes == self.graph.num_nodes and graph.edge_index.equal(self.graph.edge_index):
            return self.inputs, {}
        config = self.method.config
        normalised = _normalised(graph, self.method)
        try:
            precomputed = self.precomputed and self.precomputed.grown(normalised)
        except InputError as error:
            raise InputError(f"{self.method.name} {error}") from error
        options = {"known": self.graph.num_nodes} if config.tells_new_nodes else {}
        return _on(self.device, config.inputs(normalised, precomputed, seed=self.seed)), options

    def first_change(self, graph: Data) -> tuple[int, int] | None:
        """The first node, and its first feature, that is not what it was; ``None`` where all training nodes are."""
        known = self.graph.num_nodes
        nodes, columns = (self._features != to_scipy(slice_rows(graph.x, 0, known))).nonzero()
        return (int(nodes[0]), int(columns[0])) if len(nodes) else None

    @cached_property
    def _features(self) -> Any:
        return to_scipy(self.graph.x)


def prepare(method: Method, graph: Data, *, seed: int, device: torch.device, root: Folder = None) -> Prepared:
    """Normalise the features, make what the method needs beside the graph, and move what the model reads to the device.

    Args:
        method: The method.
        graph: A checked graph (:func:`gcnsl.graph.from_arrays`).
        seed: Of anchors and of the shifted feature.
        device: Where training will take place.
        root: A folder with dataset files, searched first; only Geom-GCN's published neighbourhoods need any.
    """
    normalised = _normalised(graph, method)
    precomputed = method.precompute(method.config, normalised, seed=seed, root=root)
    return _prepared(method, graph, normalised, precomputed, seed, device)


def prepare_again(
    method: Method, graph: Data, state: tuple[dict[str, Any], dict[str, Tensor]], *, seed: int, device: torch.device
) -> Prepared:
    """The same from the state of what was precomputed, as it was saved."""
    normalised = _normalised(graph, method)
    precomputed = method.config.from_state(*state, normalised, seed=seed)
    return _prepared(method, graph, normalised, precomputed, seed, device)


def _prepared(
    method: Method, graph: Data, normalised: Data, precomputed: Precomputed | None, seed: int, device: torch.device
) -> Prepared:
    inputs = method.config.inputs(normalised, precomputed, seed=seed)
    return Prepared(method, graph, precomputed, _on(device, inputs), seed, device)


def _normalised(graph: Data, method: Method) -> Data:
    """The graph with its features normalised: the one place where that is done."""
    graph = copy.copy(graph)
    graph.x = normalize_features(graph.x, method.config.feature_norm)
    return graph


def _on(device: torch.device, inputs: tuple[Matrix, ...]) -> tuple[Matrix, ...]:
    """The inputs on a device: the one place where they are moved there."""
    return tuple(value.to(device) for value in inputs)
