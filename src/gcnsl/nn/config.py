"""What every model's configuration can do, so that one loop trains them all and one table lists them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from torch import Tensor, nn
from torch_geometric.data import Data

from gcnsl.checks import check_whole
from gcnsl.nn.preprocessing import FeatureNorm
from gcnsl.options import Options, option
from gcnsl.sparse import Matrix


class Precomputed(Protocol):
    """What is made of a graph once, before training, and can't be made again from the graph as it grows.

    It is saved with the model: GCN-SL's spectral features, Geom-GCN's neighbourhoods.
    """

    def grown(self, graph: Data) -> Precomputed:
        """The same for a graph that begins with these nodes and goes on with new ones.

        Raises:
            InputError: If new nodes can't be taken in.
        """
        ...

    def state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """Plain values for JSON, and tensors, from which ``from_state`` makes it again."""
        ...


@dataclass(frozen=True)
class ModelConfig(Options, ABC):
    """The hyper-parameters of a model, what the model reads of a graph, and how it is built.

    ``model(*inputs)`` are then the logits of all nodes (n × C).
    """

    tells_new_nodes: ClassVar[bool] = False
    """Whether the model's forward pass takes ``known``, the number of nodes that it was trained with."""

    feature_norm: FeatureNorm = option(
        "row", "Divide each row of X by nothing (none), by its sum of magnitudes (row) or by its length (l2)."
    )

    def precompute(self, graph: Data, *, seed: int) -> Precomputed | None:
        """What has to be made of the graph once and kept; most models need nothing of the kind."""
        return None

    def from_state(
        self, plain: dict[str, Any], tensors: dict[str, Tensor], graph: Data, *, seed: int
    ) -> Precomputed | None:
        """What :meth:`Precomputed.state` gave, put together again for the graph it was made of."""
        return None

    @abstractmethod
    def inputs(self, graph: Data, precomputed: Precomputed | None, *, seed: int) -> tuple[Matrix, ...]:
        """What the model reads, on the CPU, from a graph whose features are already normalised."""

    @abstractmethod
    def build(self, in_channels: int, out_channels: int) -> nn.Module:
        """The model for so many features and classes, its weights drawn from torch's generator."""


def check_channels(**channels: int) -> None:
    """Refuse a number of features or classes that is not a whole number of at least one."""
    for name, value in channels.items():
        check_whole(name, value, least=1)
