"""What all models share: inputs are made from a graph, and arguments checked and documented as they are declared."""

from __future__ import annotations

import functools
import inspect
import textwrap
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from gcnsl.checks import check_whole
from gcnsl.nn.config import Folder, ModelConfig, Precomputed
from gcnsl.sparse import Matrix

Model = TypeVar("Model", bound=type[nn.Module])
CHANNELS = {
    "in_channels": "Number of features per node (d).",
    "out_channels": "Number of classes (C).",
    "num_nodes": "Number of nodes of the training graph; new nodes are seen through their links to these.",
}
"""What a constructor takes besides hyper-parameters, all of them whole numbers >= 1."""


class GraphModel(nn.Module):
    """A network, or another model, that can be made from a configuration and a graph.

    ``model(*inputs)`` returns the logits of all nodes (n × C).
    """

    @classmethod
    def inputs(cls, config: Any, graph: Data, *, precomputed: Precomputed | None, seed: int) -> tuple[Matrix, ...]:
        """What the model reads of a graph whose features are already normalised, on the CPU."""
        raise NotImplementedError(f"{cls.__name__} does not say how its inputs are made")

    @classmethod
    def precompute(cls, config: Any, graph: Data, *, seed: int, root: Folder = None) -> Precomputed | None:
        """What has to be computed from the training graph once and kept; ``None`` for most models."""
        return None

    @classmethod
    def from_state(
        cls, config: Any, plain: dict[str, Any], tensors: dict[str, Tensor], graph: Data, *, seed: int
    ) -> Precomputed | None:
        """The inverse of :meth:`Precomputed.state`, for the graph that it was computed from."""
        return None

    @classmethod
    def empty_row(cls, config: Any, in_channels: int, *, seed: int) -> Tensor:
        """The row of X that the model reads for a node without features (in_channels)."""
        return torch.zeros(in_channels)


def declared_by(config: type[ModelConfig]) -> Callable[[Model], Model]:
    """Check the arguments of a model's constructor, and document them, as a configuration declares them."""

    def declare(model: Model) -> Model:
        plain_init, arguments = model.__init__, inspect.signature(model.__init__)
        names = [name for name in arguments.parameters if name in config.names()]

        @functools.wraps(plain_init)
        def checked_init(self: nn.Module, *values: Any, **named: Any) -> None:
            given = arguments.bind(self, *values, **named).arguments
            for name in (name for name in CHANNELS if name in given):
                check_whole(name, given[name], least=1)
            config.check(**{name: given[name] for name in names if name in given})
            plain_init(self, *values, **named)

        model.__init__ = checked_init  # type: ignore[method-assign]
        meanings = CHANNELS | {option.name: option.meaning for option in config.described()}
        known = [name for name in arguments.parameters if name in meanings]
        model.__doc__ = _with_arguments(model.__doc__ or "", {name: meanings[name] for name in known})
        return model

    return declare


def _with_arguments(docstring: str, meanings: dict[str, str]) -> str:
    """A class's docstring with these arguments in its section ``Args``, which is made if it is missing."""
    text, shapes, rest = inspect.cleandoc(docstring).partition("\nShapes:")
    text, _, own = text.partition("\nArgs:\n")
    lines = own.splitlines()
    for name, meaning in meanings.items():
        lines += textwrap.wrap(f"{name}: {meaning}", 110, initial_indent=" " * 4, subsequent_indent=" " * 8)
    return f"{text.rstrip()}\n\nArgs:\n{chr(10).join(filter(str.strip, lines))}\n{shapes}{rest}"
