"""Methods that train in no time, under the names of the real ones."""

from dataclasses import dataclass
from typing import Literal

from gcnsl.methods import METHODS, Method
from gcnsl.options import option
from gcnsl.training import TrainingSettings

from ..evaluation.fake_methods import ChainNet, FakeConfig

LOG: list[str] = []
"""Gets a line such as "prepare mlp" or "build mlp" whenever one of the methods in :class:`LoggedConfig` does that."""


@dataclass(frozen=True)
class LoggedConfig(FakeConfig):
    """A linear classifier with all options that have published settings, or that a planned run changes."""

    hidden_channels: int = option(16, "Not used.")
    embedding: Literal["isomap", "poincare", "struc2vec", "mlp", "gcn"] = option("isomap", "Not used.")
    source: Literal["computed", "published"] = option("computed", "Not used.")
    labels: bool = option(True, "Not used.")
    trees: int = option(1000, "Not used.")
    label: Literal["mlp", "gcn", "other"] = option("other", "The name of the method in the log.")

    def inputs(self, graph, precomputed, *, seed):
        LOG.append(f"prepare {self.label}")
        return super().inputs(graph, precomputed, seed=seed)

    def build(self, in_channels, out_channels, num_nodes):
        LOG.append(f"build {self.label}")
        return super().build(in_channels, out_channels, num_nodes)


@dataclass(frozen=True)
class ReconnectingConfig(LoggedConfig):
    """A classifier that learns a graph."""

    def build(self, in_channels, out_channels, num_nodes):
        return ChainNet(in_channels, out_channels)


@dataclass(frozen=True)
class PartsConfig(LoggedConfig):
    """A classifier with the parts of GCN-SL+, of which it has none."""

    uses = frozenset({"directions"})

    feature_norm: Literal["none", "l2"] = option("l2", "Not used.")
    neighbours_heads: int = option(1, "Not used.", least=0)
    contrast: float = option(1.0, "Not used.", least=0)
    structure_branch: bool = option(True, "Not used.")
    direction: Literal["auto", "undirected", "out", "in", "both"] = option("auto", "Not used.")


def fake_methods() -> dict[str, Method]:
    """All methods of the registry, GCN-SL+ and twins; only GCN-SL is the real one."""
    quick = TrainingSettings(epochs=3)
    labels = {name: name if name in ("mlp", "gcn") else "other" for name in (*METHODS, "twins")}
    fakes = {name: Method(name, LoggedConfig(label=label), quick) for name, label in labels.items()}
    fakes["gcn-sl-plus"] = Method("gcn-sl-plus", PartsConfig(), quick)
    fakes["nlgnn"] = Method("nlgnn", ReconnectingConfig(), quick)
    return fakes | {name: METHODS[name] for name in ("gcn-sl-cc", "gcn-sl-av")}
