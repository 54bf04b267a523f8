"""Methods that train in no time, under the names of the real ones."""

from dataclasses import dataclass

import torch
from torch import nn

from gcnsl.errors import TrainingDiverged
from gcnsl.methods import METHODS, Method
from gcnsl.training import TrainingSettings


@dataclass(frozen=True)
class FakeConfig:
    """A linear classifier with the options that experiments, the literature and searches change; it obeys none."""

    name: str = "fake"
    num_layers: int = 2
    hidden_channels: int = 8
    dropout: float = 0.5
    relu: bool = True
    embedding: str = "isomap"
    source: str = "computed"
    kernel_size: int = 3
    fails: bool = False
    log: str = ""
    """A file that gets a line whenever a graph is prepared or a model built."""

    def prepare(self, data, *, seed):
        self._note("prepare")
        return (data.x,)

    def build(self, data):
        self._note("build")
        if self.fails:
            raise TrainingDiverged("training diverged: as it was told to")
        return nn.Linear(data.num_features, int(data.y.max()) + 1)

    def _note(self, what: str) -> None:
        if self.log:
            with open(self.log, "a") as file:
                file.write(f"{what} {self.name}\n")


@dataclass(frozen=True)
class FakeReconnectingConfig(FakeConfig):
    """One that learns a graph: of the nodes in the order of their first feature."""

    def build(self, data):
        return ChainNet(data.num_features, int(data.y.max()) + 1)


class ChainNet(nn.Linear):
    def reconnected_graph(self, x):
        order = torch.argsort(self.weight[0] @ x.T)
        edges = torch.stack([order[:-1], order[1:]])
        both = torch.cat([edges, edges.flip(0), order.repeat(2, 1)], dim=1)
        return both, torch.ones_like(both[0])


def fake_methods(**options) -> dict[str, Method]:
    names = ("mlp", "gcn", "gat", "geom-gcn", "mixhop", "h2gcn-1", "h2gcn-2")
    quick = TrainingSettings(epochs=3)
    methods = {name: Method(FakeConfig(name=name, **options), quick) for name in names}
    methods["nlgnn"] = Method(FakeReconnectingConfig(name="nlgnn", **options), quick)
    return {**methods, **{name: METHODS[name] for name in ("gcn-sl-cc", "gcn-sl-av")}}
