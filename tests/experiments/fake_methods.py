"""Methods that train in no time, under the names of the real ones."""

from dataclasses import dataclass

from gcnsl.methods import METHODS, Method
from gcnsl.options import option
from gcnsl.training import TrainingSettings

from ..evaluation.fake_methods import ChainNet, FakeConfig


@dataclass(frozen=True)
class LoggedConfig(FakeConfig):
    """A linear classifier with all options that have published settings."""

    embedding: str = option("isomap", "Not used.")
    source: str = option("computed", "Not used.")
    label: str = option("", "The name of the method in the log.")
    log: str = option("", "A file that gets a line whenever a graph is prepared or a model is built.")

    def inputs(self, graph, precomputed, *, seed):
        self._note("prepare")
        return super().inputs(graph, precomputed, seed=seed)

    def build(self, in_channels, out_channels):
        self._note("build")
        return super().build(in_channels, out_channels)

    def _note(self, what: str) -> None:
        if self.log:
            with open(self.log, "a") as file:
                file.write(f"{what} {self.label}\n")


@dataclass(frozen=True)
class ReconnectingConfig(LoggedConfig):
    """A classifier that learns a graph."""

    def build(self, in_channels, out_channels):
        return ChainNet(in_channels, out_channels)


def fake_methods(log: str = "") -> dict[str, Method]:
    """All methods of the registry; only GCN-SL is the real one."""
    quick = TrainingSettings(epochs=3)
    fakes = {name: Method(name, LoggedConfig(label=name, log=log), quick) for name in METHODS}
    fakes["nlgnn"] = Method("nlgnn", ReconnectingConfig(label="nlgnn", log=log), quick)
    return fakes | {name: METHODS[name] for name in ("gcn-sl-cc", "gcn-sl-av")}
