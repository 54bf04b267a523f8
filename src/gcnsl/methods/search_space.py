"""What a search tries: the ranges that options are declared with, the grids of the literature, and first guesses."""

import math
from collections.abc import Mapping
from typing import Any

from gcnsl.errors import ArgumentError
from gcnsl.methods.registry import find_method
from gcnsl.options import OneOf, Search

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


def combinations(space: Mapping[str, Search]) -> float:
    """The number of combinations of all options' values; infinite if an option's values can't be listed."""
    return math.prod(math.inf if search.values is None else len(search.values) for search in space.values())


def space_of(method: str, *, grid: bool = False) -> dict[str, Search]:
    """The options of a method that are searched for, in their whole range or among the values of its literature."""
    if grid:
        return {name: OneOf(*choices) for name, choices in grid_of(method).items()}
    return {option.name: option.search for option in find_method(method).described() if option.search is not None}
