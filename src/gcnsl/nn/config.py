"""The interface of every model's configuration, so that one training loop and one table of methods serve them all."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from inspect import signature
from typing import Any, ClassVar, Literal, Protocol, TypeVar

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from gcnsl.checks import check_whole
from gcnsl.nn.preprocessing import Direction, FeatureNorm
from gcnsl.options import Options, option
from gcnsl.sparse import Matrix

Standardize = Literal["auto", "always", "never"]
Model = TypeVar("Model", bound=nn.Module)


class Precomputed(Protocol):
    """What is computed from the training graph once and can't be recomputed from a larger graph.

    Examples are GCN-SL's spectral features and Geom-GCN's neighbourhoods. It is saved with the model.
    """

    def grown(self, graph: Data) -> Precomputed:
        """The same for a graph whose first nodes are these and whose other nodes are new, or an InputError."""
        ...

    def state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """Plain values for JSON and tensors by name, from which ``from_state`` restores it."""
        ...


@dataclass(frozen=True)
class ModelConfig(Options, ABC):
    """The hyper-parameters of a model, how its inputs are made from a graph, and how it is built.

    ``model(*inputs)`` returns the logits of all nodes (n × C).
    """

    tells_new_nodes: ClassVar[bool] = False
    """Whether the forward pass takes ``known``, the number of nodes of the training graph."""
    node_columns: ClassVar[frozenset[int] | None] = None
    """The numbers of the inputs whose columns, like their rows, stand for nodes; ``None`` if the nodes can't be divided
    among several processes."""

    feature_norm: FeatureNorm = option(
        "row", "Divide each row of X by its sum of magnitudes (row) or its length (l2), or keep X as it is (none)."
    )
    standardize: Standardize = option(
        "auto",
        "Give columns of X that are not 0/1 mean 0 and variance 1, and leave rows as they are; auto does so if these "
        "columns of a dense X are mostly nonzero.",
    )

    @property
    def uses(self) -> frozenset[str]:
        """What the model reads of the edges besides ``edge_index``: ``"weights"``, ``"directions"``, both or none."""
        return frozenset()

    def precompute(self, graph: Data, *, seed: int) -> Precomputed | None:
        """What has to be computed from the training graph once and kept; ``None`` for most models."""
        return None

    def from_state(
        self, plain: dict[str, Any], tensors: dict[str, Tensor], graph: Data, *, seed: int
    ) -> Precomputed | None:
        """The inverse of :meth:`Precomputed.state`, for the graph that it was computed from."""
        return None

    @abstractmethod
    def inputs(self, graph: Data, precomputed: Precomputed | None, *, seed: int) -> tuple[Matrix, ...]:
        """What the model reads, on the CPU; the features of the graph are already normalised."""

    def empty_row(self, in_channels: int, *, seed: int) -> Tensor:
        """The row of X that the model reads for a node without features (in_channels)."""
        return torch.zeros(in_channels)

    @abstractmethod
    def build(self, in_channels: int, out_channels: int, num_nodes: int) -> nn.Module:
        """The model for this number of features, classes and nodes of the training graph.

        Its weights are drawn from torch's generator.
        """

    def make(self, kind: type[Model], **channels: int) -> Model:
        """A model of this class with the hyper-parameters that its constructor takes."""
        taken = signature(kind).parameters
        return kind(**channels, **{name: value for name, value in asdict(self).items() if name in taken})


@dataclass(frozen=True)
class DirectedConfig(ModelConfig):
    """The hyper-parameters of a model that can see a graph along its arcs, and that uses the weights of edges."""

    direction: Direction = option(
        "undirected", "Whom a node sees: all its neighbours, those it points to (out), or those that point to it (in)."
    )

    @property
    def uses(self) -> frozenset[str]:
        """The weights, and the directions unless the graph is seen as undirected."""
        return used_with(self.direction)


def used_with(direction: str) -> frozenset[str]:
    """What a model uses of edges: their weights, and their directions unless it sees the graph as undirected."""
    return frozenset({"weights"} if direction == "undirected" else {"weights", "directions"})


def check_channels(**channels: int) -> None:
    """Check that numbers of features or classes are whole numbers >= 1."""
    for name, value in channels.items():
        check_whole(name, value, least=1)
