"""Which hyper-parameters are searched for, and in which range."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from optuna.trial import BaseTrial

from gcnsl.errors import ArgumentError
from gcnsl.methods.registry import find_method


@dataclass(frozen=True)
class Suggest:
    """What a trial suggests for an option, and all values that it may suggest if they can be listed."""

    of_trial: Callable[[BaseTrial, str], Any]
    values: tuple[Any, ...] | None = None

    def __call__(self, trial: BaseTrial, name: str) -> Any:
        """The trial's value for the option of this name."""
        return self.of_trial(trial, name)


def _log(low: float, high: float) -> Suggest:
    """A number whose logarithm is uniform; two digits are enough."""
    return Suggest(lambda trial, name: float(f"{trial.suggest_float(name, low, high, log=True):.2g}"))


def _steps(low: float, high: float, step: float) -> Suggest:
    values = tuple(round(low + step * number, 6) for number in range(round((high - low) / step) + 1))
    return Suggest(lambda trial, name: round(trial.suggest_float(name, low, high, step=step), 6), values)


def _whole(low: int, high: int, step: int = 1) -> Suggest:
    values = tuple(range(low, high + 1, step))
    return Suggest(lambda trial, name: trial.suggest_int(name, low, high, step=step), values)


def _one_of(*choices: Any) -> Suggest:
    return Suggest(lambda trial, name: trial.suggest_categorical(name, choices), choices)


_SPACE: Mapping[str, Suggest] = {
    "lr": _log(0.001, 0.05),
    "weight_decay": _log(1e-6, 5e-3),
    "dropout": _steps(0.0, 0.8, 0.1),
    "input_dropout": _steps(0.0, 0.8, 0.1),
    "hidden_channels": _one_of(16, 32, 48, 64, 128),
    "epsilon": _steps(0.5, 0.99, 0.01),
    "n_anchors": _whole(100, 700, 100),
    "n_components": _whole(5, 100),
    "rounds": _whole(1, 5),
    "similarity_channels": _one_of(8, 16, 32),
    "feature_norm": _one_of("none", "row", "l2"),
    "spectral_scale": _one_of("unit", "sqrt-n"),
    "self_loops": _one_of(True, False),
    "adjacency_norm": _one_of("symmetric", "row"),
    "relu": _one_of(True, False),
    "kernel_size": _one_of(3, 5),
    "direction": _one_of("undirected", "out", "in"),
    "norm": _one_of("none", "batch", "layer"),
    "drop_features": _one_of(True, False),
    "residual": _one_of(True, False),
}
"""By option. Every value of the paper's table is inside, and so are the switches for what the paper leaves open. Those
of the ablation (A, A* and F on or off) are not hyper-parameters: without A* it would be another method. GCN-SL+ may do
without its parts, where validation nodes say so."""

_WIDE: Mapping[str, Suggest] = {"hidden_channels": _one_of(64, 128, 256)}
_DEEP: Mapping[str, Suggest] = {**_WIDE, "num_layers": _one_of(2, 3, 4, 6, 8, 10, 12, 15)}
"""For methods whose literature finds wider or deeper networks better."""

_NEIGHBOUR_COLUMNS: Mapping[str, Suggest] = {"hops": _whole(0, 4), "direction": _one_of("undirected", "both")}
_OWN: Mapping[str, Mapping[str, Suggest]] = {
    "gcn": _DEEP,
    "sage": _DEEP,
    "geom-gcn": {"embedding": _one_of("isomap", "poincare", "struc2vec")},
    "linkx": {**_WIDE, "num_layers": _whole(1, 4), "link_layers": _whole(1, 2), "feature_layers": _whole(1, 2)},
    "dir-gcn": {
        **_WIDE,
        "num_layers": _whole(2, 6),
        "alpha": _one_of(0.0, 0.5, 1.0),
        "jump": _one_of("max", "cat"),
        "unit_rows": _one_of(True, False),
        "weight_decay": _one_of(0.0, 1e-5, 1e-4, 5e-4),
    },
    "gpr-gnn": {"restart": _one_of(0.1, 0.2, 0.5, 0.9), "propagation_dropout": _steps(0.0, 0.8, 0.1)},
    "fsgnn": {
        "hops": _whole(1, 8),
        "selection_lr": _log(0.002, 0.05),
        "selection_weight_decay": _log(1e-5, 0.1),
    },
    "acm-gcn": {
        "lr": _log(0.001, 0.1),
        "weight_decay": _log(1e-6, 1e-2),
        "dropout": _steps(0.0, 0.9, 0.1),
        "structure": _one_of(True, False),
        "relu_first": _one_of(True, False),
    },
    "mixhop": {
        "lr": _log(0.01, 1.0),  # for plain gradient descent
        "power_channels": _one_of(16, 21, 32, 48, 64, 128, 192),
        "dropout": _steps(0.0, 0.9, 0.1),
    },
    "gcn-sl-plus": {
        "lr": _log(0.001, 0.03),
        "weight_decay": _log(1e-4, 1e-2),
        "hidden_channels": _one_of(16, 64, 128, 256),
        "neighbours_heads": _one_of(0, 1),
        "features_heads": _one_of(0, 1),
        "similarity_channels": _one_of(16, 32, 64),
        "link_decay": _log(1e-4, 3e-3),
        "dropout": _steps(0.3, 0.8, 0.1),
        "input_dropout": _one_of(0.0, 0.3, 0.5, 0.8),
        "link_dropout": _one_of(0.0, 0.5),
        "direction": _one_of("auto", "undirected", "both"),
        "rounds": _one_of(1, 2, 3, 4, 6),
        "mean_degree": _one_of(3.0, 10.0, 30.0, 100.0),
        "contrast": _one_of(0.1, 1.0, 3.0),
        "structure_branch": _one_of(True, False),
        "normalize_branches": _one_of(True, False),
        "feature_norm": _one_of("none", "l2"),
        "monitor": _one_of("loss", "accuracy"),
    },
    "nlgnn": {
        "embedding": _one_of("mlp", "gcn"),
        "hidden_channels": _one_of(16, 32, 48, 64, 96, 128),
        "weight_decay": _one_of(0.0, 5e-6, 5e-5, 5e-4),  # none at all on the Wikipedia graphs
        "conv_dropout": _steps(0.0, 0.8, 0.1),
    },
    "label-propagation": {"alpha": _steps(0.1, 1.0, 0.05)},
    "logistic": _NEIGHBOUR_COLUMNS,
    "boosted-trees": {
        **_NEIGHBOUR_COLUMNS,
        "components": _one_of(16, 32, 64, 128),
        "learning_rate": _log(0.01, 0.3),
        "leaves": _one_of(4, 8, 16, 31),
        "leaf_nodes": _one_of(1, 2, 5, 10, 20),
    },
}
"""Options that mean something else in one method than in others, or have another range there."""

_FIXED = {
    ("h2gcn-1", "rounds"),
    ("h2gcn-2", "rounds"),
    ("gat", "hidden_channels"),
    ("gcn-sl-plus", "epsilon"),
}
"""Options that are decided by a method's name or its literature."""

_DEEP_START = {
    "num_layers": 12,
    "norm": "batch",
    "drop_features": False,
    "dropout": 0.2,
    "lr": 0.01,
    "weight_decay": 1e-6,
}
_BY_LINKS = {"feature_norm": "none", "monitor": "accuracy"}
_BY_FEATURES = {"neighbours_heads": 0, "structure_branch": False, "monitor": "accuracy"}
_STARTS: Mapping[str, tuple[Mapping[str, Any], ...]] = {
    "gcn": ({**_DEEP_START, "residual": True},),
    "sage": ({**_DEEP_START, "num_layers": 15},),
    "gcn-sl-plus": (
        {**_BY_LINKS, "mean_degree": 100.0},
        {
            **_BY_LINKS,
            "mean_degree": 3.0,
            "similarity_channels": 32,
            "rounds": 3,
            "self_loops": True,
            "lr": 0.004,
            "weight_decay": 3e-4,
            "link_decay": 7e-4,
            "dropout": 0.3,
            "input_dropout": 0.8,
        },
        {
            **_BY_FEATURES,
            "features_heads": 1,
            "normalize_branches": True,
            "rounds": 1,
            "lr": 0.015,
            "weight_decay": 5e-4,
            "input_dropout": 0.3,
        },
        {
            **_BY_FEATURES,
            "rounds": 6,
            "adjacency_norm": "symmetric",
            "hidden_channels": 128,
            "lr": 0.008,
            "weight_decay": 5e-3,
            "dropout": 0.6,
        },
        {
            **_BY_FEATURES,
            "rounds": 4,
            "adjacency_norm": "symmetric",
            "hidden_channels": 128,
            "lr": 0.002,
            "dropout": 0.6,
            "input_dropout": 0.0,
        },
        {
            **_BY_LINKS,
            "neighbours_heads": 0,
            "link_dropout": 0.5,
            "lr": 0.02,
            "weight_decay": 3e-4,
            "link_decay": 3e-3,
            "input_dropout": 0.0,
        },
    ),
}
"""What a search tries right after the defaults: settings far from them, each good on graphs of another kind. Those of
GCN and GraphSAGE are deep networks (Luo et al., 2024). Those of GCN-SL+ were chosen on validation nodes: for nodes that
are alike in whom they link to, with many and with few neighbours in A*; for few nodes with telling features; and for
neighbours that agree, with many features, with few, and with links that tell more."""

_H2GCN_GRID = {"dropout": (0.0, 0.5), "weight_decay": (1e-5, 5e-4), "relu": (True, False)}
_GRIDS: Mapping[str, Mapping[str, tuple[Any, ...]]] = {
    "gcn": {"patience": (40, 100, 200)},
    "geom-gcn": {"embedding": ("isomap", "poincare", "struc2vec")},
    "mixhop": {"power_channels": (21, 64)},  # 64 and 192 over three powers
    "h2gcn-1": _H2GCN_GRID,
    "h2gcn-2": _H2GCN_GRID,
    "nlgnn": {"embedding": ("mlp", "gcn"), "kernel_size": (3, 5)},
}
"""The values that H2GCN's experiments and the methods' own papers choose from for each graph."""


def grid_of(method: str) -> Mapping[str, tuple[Any, ...]]:
    """The few values of a method's literature, by option."""
    method = find_method(method).name
    if method not in _GRIDS:
        rule = f"has no grid in its literature: leave out the grid, or use {', '.join(_GRIDS)}"
        raise ArgumentError("method", method, rule)
    return _GRIDS[method]


def starts_of(method: str) -> tuple[Mapping[str, Any], ...]:
    """Options that a search tries right after the defaults."""
    return _STARTS.get(find_method(method).name, ())


def combinations(space: Mapping[str, Suggest]) -> float:
    """The number of combinations of all options' values; infinite if an option's values can't be listed."""
    return math.prod(math.inf if suggest.values is None else len(suggest.values) for suggest in space.values())


def space_of(method: str, *, grid: bool = False) -> dict[str, Suggest]:
    """The options of a method that are searched for, in their whole range or among the values of its literature."""
    if grid:
        return {name: _one_of(*choices) for name, choices in grid_of(method).items()}
    method = find_method(method).name
    has, space = find_method(method).options(), {**_SPACE, **_OWN.get(method, {})}
    return {name: suggest for name, suggest in space.items() if name in has and (method, name) not in _FIXED}
