"""Methods that train in no time, under the names of the real ones."""

from dataclasses import dataclass, replace

import torch
from torch import nn

from gcnsl.errors import TrainingDiverged
from gcnsl.methods import METHODS, Method
from gcnsl.nn.config import ModelConfig
from gcnsl.options import OneOf, Steps, option
from gcnsl.training import TrainingSettings


@dataclass(frozen=True)
class FakeConfig(ModelConfig):
    """A linear classifier with the options that experiments and searches change; it obeys none but ``fails``."""

    num_layers: int = option(2, "Not used.")
    hidden_channels: int = option(8, "Not used.", search=OneOf(8, 16))
    conv_dropout: float = option(0.5, "Not used.")
    dropout: float = option(0.5, "Not used.", search=Steps(0.0, 0.8, 0.1))
    relu: bool = option(True, "Not used.", search=OneOf(True, False))
    kernel_size: int = option(3, "Not used.")
    fails: bool = option(False, "Whether the model can't be trained.")

    def inputs(self, graph, precomputed, *, seed):
        return (graph.x,)

    def build(self, in_channels, out_channels, num_nodes):
        if self.fails:
            raise TrainingDiverged("training diverged: as it was told to")
        return nn.Linear(in_channels, out_channels)


class ChainNet(nn.Linear):
    """It learns a graph: a chain of the nodes in the order of their score."""

    learns_graph = True

    def learned_graph(self, x, *, rows=None):
        order = torch.argsort(self.weight[0] @ x.T)
        edges = torch.stack([order[:-1], order[1:]])
        both = torch.cat([edges, edges.flip(0), order.repeat(2, 1)], dim=1)
        if rows is not None:
            both = both[:, torch.isin(both[0], torch.arange(len(x))[rows])]
        return both, torch.ones_like(both[0])


def fake(name: str, **options) -> Method:
    """A method of this name that trains for three epochs."""
    real = METHODS[name]
    return replace(real, config=FakeConfig(**options), training=TrainingSettings(epochs=3))
