"""All methods by name, with the hyper-parameters of model and training and what a search tries of them.

To add a method, declare its hyper-parameters in ``nn/config.py``, write a file in ``nn/`` and add a line here; one that
is not neural goes into ``plain/``. Nothing here loads torch.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from gcnsl.checks import check_choice, did_you_mean
from gcnsl.errors import InputError
from gcnsl.nn.config import (
    ACMGCNConfig,
    DirGCNConfig,
    FSGNNConfig,
    GATConfig,
    GCNConfig,
    GCNSLConfig,
    GCNSLPlusConfig,
    GeomGCNConfig,
    GPRGNNConfig,
    H2GCNConfig,
    LINKXConfig,
    MixHopConfig,
    MLPConfig,
    ModelConfig,
    NLGNNConfig,
    SAGEConfig,
)
from gcnsl.options import Log, OneOf, Option, Search, parse_toml
from gcnsl.plain.plain_config import BoostedTreesConfig, LabelPropagationConfig, LogisticConfig, TwinsConfig
from gcnsl.training.settings import StageSettings, TrainingSettings

if TYPE_CHECKING:
    from torch_geometric.data import Data


@dataclass(frozen=True)
class Method:
    """A model with its hyper-parameters and those of training.

    With :class:`TrainingSettings` the model is a network, trained by gradient descent; otherwise it is fitted in
    stages, see :class:`gcnsl.training.loop.StagedModel`.

    Attributes:
        search: Search ranges of the method's own for options of training.
        title: What people call the method, by default its name in capitals; ``_`` begins a subscript.
    """

    name: str
    config: ModelConfig
    training: StageSettings
    search: Mapping[str, Search] = field(default_factory=dict, compare=False)
    title: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "title", self.title or self.name.upper())

    def options(self) -> dict[str, Any]:
        """All hyper-parameters by name."""
        return asdict(self.config) | asdict(self.training)

    def unused(self, graph: Data) -> list[str]:
        """What the graph tells of its edges and the method does not use: ``"directions"``, ``"weights"``."""
        from gcnsl.graph.edges import EDGE_FACTS

        told = frozenset[str]().union(*(facts for name, facts in EDGE_FACTS.items() if name in graph))
        return sorted(told - self.config.uses)

    def described(self) -> list[Option]:
        """All hyper-parameters with meaning and range; defaults and search ranges are those of this method."""
        values = self.options()
        return [
            option._replace(default=values[option.name], search=self.search.get(option.name, option.search))
            for option in (*self.config.described(), *self.training.described())
        ]

    def with_options(self, **options: Any) -> Method:
        """The method with other values of some hyper-parameters."""
        known, options = self.options(), renamed(options)
        for name in options:
            if name not in known:
                hint = did_you_mean(name, known)
                raise InputError(f"{name}: {self.name} has no such option; there are {', '.join(known)}{hint}")
        own = {name: options.pop(name) for name in self.config.names() if name in options}
        return replace(self, config=self.config.changed(**own), training=self.training.changed(**options))


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method("mlp", MLPConfig(), TrainingSettings(epochs=2000, patience=100)),
        Method("gcn", GCNConfig(), TrainingSettings(epochs=2000, patience=100)),
        Method("gat", GATConfig(), TrainingSettings(lr=0.005, epochs=1500, patience=100)),
        Method(
            "mixhop",
            MixHopConfig(),
            TrainingSettings(lr=0.5, optimizer="sgd", epochs=2000),
            search={"lr": Log(0.01, 1.0)},  # for plain gradient descent
            title="MixHop",
        ),
        Method(
            "geom-gcn",
            GeomGCNConfig(),
            TrainingSettings(lr=0.05, weight_decay=5e-6, epochs=2000, patience=100, plateau_factor=0.8),
            title="Geom-GCN",
        ),
        Method("h2gcn-1", H2GCNConfig(rounds=1), TrainingSettings(epochs=2000, monitor="accuracy")),
        Method("h2gcn-2", H2GCNConfig(rounds=2), TrainingSettings(epochs=2000, monitor="accuracy")),
        Method(
            "nlgnn",
            NLGNNConfig(),
            TrainingSettings(lr=0.05, epochs=3000, patience=1500, monitor="accuracy"),
            search={"weight_decay": OneOf(0.0, 5e-6, 5e-5, 5e-4)},  # none at all on the Wikipedia graphs
        ),
        Method("sage", SAGEConfig(), TrainingSettings(epochs=2000, patience=100), title="GraphSAGE"),
        Method("linkx", LINKXConfig(), TrainingSettings(weight_decay=1e-3, epochs=500, monitor="accuracy")),
        Method(
            "dir-gcn",
            DirGCNConfig(),
            TrainingSettings(weight_decay=0.0, epochs=2000, monitor="accuracy"),
            search={"weight_decay": OneOf(0.0, 1e-5, 1e-4, 5e-4)},
            title="Dir-GCN",
        ),
        Method("gpr-gnn", GPRGNNConfig(), TrainingSettings(epochs=1000)),
        Method("fsgnn", FSGNNConfig(), TrainingSettings(epochs=1500, patience=100)),
        Method(
            "acm-gcn",
            ACMGCNConfig(),
            TrainingSettings(weight_decay=1e-3, epochs=5000),
            search={"lr": Log(0.001, 0.1), "weight_decay": Log(1e-6, 1e-2)},
        ),
        Method("gcn-sl-cc", GCNSLConfig(merge="concat"), TrainingSettings(lr=0.02), title="GCN-SL_cc"),
        Method("gcn-sl-av", GCNSLConfig(merge="average"), TrainingSettings(lr=0.02), title="GCN-SL_av"),
        Method(
            "gcn-sl-plus",
            GCNSLPlusConfig(),
            TrainingSettings(lr=0.005, weight_decay=1e-3, patience=100),
            search={"lr": Log(0.001, 0.03), "weight_decay": Log(1e-4, 1e-2), "monitor": OneOf("loss", "accuracy")},
            title="GCN-SL+",
        ),
        Method(
            "label-propagation",
            LabelPropagationConfig(),
            StageSettings(epochs=50, patience=10, monitor="accuracy"),
            title="label propagation",
        ),
        Method(
            "logistic",
            LogisticConfig(),
            StageSettings(epochs=11, patience=4, monitor="accuracy"),
            title="logistic regression",
        ),
        Method("boosted-trees", BoostedTreesConfig(), StageSettings(patience=4), title="boosted trees"),
        Method("twins", TwinsConfig(), StageSettings(), title="Twins"),
    )
}
"""The methods that the paper compares with GCN-SL have the hyper-parameters of H2GCN's experiments, as in the paper;
only MixHop trains for longer, up to 2000 epochs instead of 400. NLGNN has those of its authors' code, which stops after
half of the epochs at the earliest. Those from SAGE to ACM-GCN, which are not in the paper, have settings that their
authors use."""
ALIASES = {"gcn-sl": "gcn-sl-cc", "h2gcn": "h2gcn-2"}
FORMER_NAMES = {"power_channels": "hidden_channels"}
"""Options that were called otherwise in version 0.2.0, whose models, settings and results are still read."""


def renamed(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options by the names that they have today."""
    return {FORMER_NAMES.get(name, name): value for name, value in options.items()}


def find_method(name: str) -> Method:
    """The method with this name or alias."""
    check_choice("method", name, [*METHODS, *ALIASES])
    return METHODS[ALIASES.get(name, name)]


@cache
def _starts() -> dict[str, tuple[Mapping[str, Any], ...]]:
    text = (resources.files("gcnsl.methods") / "starts.toml").read_text(encoding="utf-8")
    return {name: tuple(starts) for name, starts in parse_toml(text).items()}


def starts_of(method: str) -> tuple[Mapping[str, Any], ...]:
    """Options that a search tries right after the defaults: ``starts.toml`` in this package."""
    return _starts().get(find_method(method).name, ())


def space_of(method: str) -> dict[str, Search]:
    """The options of a method that are searched for, and their ranges."""
    return {option.name: option.search for option in find_method(method).described() if option.search is not None}


def combinations(space: Mapping[str, Search]) -> float:
    """The number of combinations of all options' values; infinite if an option's values can't be listed."""
    return math.prod(math.inf if search.values is None else len(search.values) for search in space.values())
