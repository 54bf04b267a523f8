"""Arguments of the wrong type or out of range, one at a time, for every public constructor and function.

What an argument may be is read from its type hint; values that no argument of such a type can have must be refused.
"""

from __future__ import annotations

import inspect
import math
import os
import random
from collections.abc import Callable, Iterator
from functools import partial
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np
import torch
from bench.hostile.cases import Case, must_be_refused
from torch_geometric.data import Data

import gcnsl
from gcnsl import nn
from gcnsl.auto.search import Search, search
from gcnsl.evaluation import compare
from gcnsl.methods import METHODS

N, D = 24, 5
NEVER: tuple[Any, ...] = ("x", "", b"x", [1], {"a": 1}, object(), 1j, math.nan, math.inf, -math.inf)
"""What is neither a number nor a truth value nor one of several words."""
WRONG: dict[Any, tuple[Any, ...]] = {
    int: (*NEVER, None, True, 1.5, -1, -(10**40), 10**40, np.float64(2.5), torch.tensor([1, 2])),
    float: (*NEVER, None, True, -1, -0.5, 10**400, -1e308, torch.tensor([0.5, 0.5])),
    bool: (*NEVER, None, 2, -1, 0.5, "true", "False"),
    str: (*NEVER[:6], 1, True, 0.5, "no such thing", "\0", "a\nb", "x" * 5000),
}
ANY_SIGN = {"signal"}
"""Numbers that may be negative."""

ENDLESS = False
"""Whether cases are drawn without end; otherwise ``cases`` lists all there are."""


def cases(rng: random.Random) -> Iterator[Case]:
    """Every wrong value for every argument of everything."""
    for name, function, good, hints in _targets():
        for argument, hint in hints.items():
            for value in _wrong_values(argument, hint):
                call = partial(_call, function, good, argument, value)
                yield Case(name, f"{argument}={value!r:.60}", call, must_be_refused)


def _call(function: Callable[..., Any], good: dict[str, Any], argument: str, value: Any) -> Any:
    return function(**{**good, argument: value})


def _wrong_values(argument: str, hint: Any) -> list[Any]:
    kinds = get_args(hint) if get_origin(hint) not in (None, Literal, tuple) else (hint,)
    if NoneType in kinds:
        kinds = tuple(kind for kind in kinds if kind is not NoneType)
        return [value for value in _wrong_values(argument, kinds[0]) if value is not None]
    kind = str if get_origin(kinds[0]) is Literal else kinds[0]
    values = WRONG.get(kind, ())
    return [value for value in values if not (argument in ANY_SIGN and isinstance(value, int | float) and value < 0)]


def _targets() -> Iterator[tuple[str, Callable[..., Any], dict[str, Any], dict[str, Any]]]:
    """Name, function, good arguments and type hints of the arguments to vary."""
    graph, z = _graph(), torch.nn.functional.normalize(torch.rand(N, 4), dim=1)
    x, y, edges = graph.x.numpy(), graph.y.numpy(), graph.edge_index.numpy()

    def fit(classifier: Any) -> Any:
        return classifier.fit(x, y, edge_index=edges)

    for name, method in METHODS.items():
        kinds = get_type_hints(type(method.config)) | get_type_hints(type(method.training))
        options = {option: kinds[option] for option in method.options() if option != "class_weight"}
        yield f"NodeClassifier {name}", lambda **given: fit(gcnsl.NodeClassifier(**given)), {"method": name}, options
    own = {
        "validation_fraction": float,
        "random_state": int | None,
        "device": str,
        "checkpoint_every": int,
        "method": str,
    }
    yield (
        "NodeClassifier",
        lambda **given: fit(gcnsl.NodeClassifier(**given)),
        {"epochs": 2, "checkpoint": "/dev/null/x"},
        {**own, "minutes": float | None},
    )
    method = METHODS["gcn-sl-cc"]
    kinds = get_type_hints(type(method.config)) | get_type_hints(type(method.training))
    numbers = {name: kind for name, kind in kinds.items() if name in gcnsl.GCNSLClassifier().options}
    del numbers["class_weight"]
    yield "GCNSLClassifier", lambda **given: fit(gcnsl.GCNSLClassifier(**given)), {"epochs": 2}, numbers
    kinds = {"method": str, "n_components": int, "n_anchors": int, "scale": str}
    yield (
        "SpectralFeatures",
        lambda **given: gcnsl.SpectralFeatures(**given).fit_transform(x),
        {"n_components": 2, "n_anchors": 4},
        kinds,
    )
    yield (
        "SpectralFeatures",
        lambda **given: gcnsl.SpectralFeatures("sc", n_components=2, **given).fit_transform(x),
        {},
        {"sigma": float | None},
    )
    operator = {"epsilon": float, "loops": bool, "backend": str}
    yield "reconnect", gcnsl.reconnect, {"z": z, "h": torch.rand(N, 3), "epsilon": 0.5}, operator
    listed = {"epsilon": float, "loops": bool, "normalize": bool}
    yield "reconnected_edges", gcnsl.reconnected_edges, {"z": z, "epsilon": 0.5}, listed
    yield "from_arrays", gcnsl.from_arrays, {"x": x, "edge_index": edges, "y": y}, {"directed": bool}
    yield from _tables(x, edges)
    loaded = {"split": str | None, "directed": bool, "runs": int, "seed": int}
    yield "load", gcnsl.load, {"name": "texas"}, {"name": str, **loaded}
    kinds = {name: hint for name, hint in get_type_hints(gcnsl.synthetic).items() if name != "return"}
    yield "synthetic", gcnsl.synthetic, {"n": 60, "degree": 3.0}, kinds
    compared = {"runs": int, "metric": str, "seed": int, "device": str}
    yield "compare", compare, {"data": graph, "methods": {"mlp": METHODS["mlp"]}, "runs": 1}, compared
    searched = {"method": METHODS["mlp"], "data": graph, "storage": os.devnull}
    yield "Search", Search, searched, compared
    wanted = {"trials": int, "seconds": float | None}
    yield "search", search, {"wanted": Search(**searched), "trials": 1}, wanted
    for name in nn.__all__:
        model = getattr(nn, name)
        if inspect.isclass(model) and issubclass(model, torch.nn.Module):
            hints = {key: hint for key, hint in get_type_hints(model.__init__).items() if key != "return"}
            needed = {"in_channels": D, "hidden_channels": 4, "out_channels": 3, "num_nodes": N}
            needed |= {"spectral_channels": 2}
            good = {key: value for key, value in needed.items() if key in hints}
            yield f"nn.{name}", model, good, hints


def _tables(x: Any, edges: Any) -> Iterator[tuple[str, Callable[..., Any], dict[str, Any], dict[str, Any]]]:
    import pandas as pd

    nodes = pd.DataFrame(x, columns=[f"f{i}" for i in range(D)])
    nodes.insert(0, "id", range(N))
    links = pd.DataFrame({"source": edges[0], "target": edges[1]})
    hints = {"directed": bool, **dict.fromkeys(("id", "label", "split", "fold", "source", "target"), str | None)}
    yield "from_tables", gcnsl.from_tables, {"nodes": nodes, "edges": links}, hints


def _graph() -> Data:
    generator = np.random.default_rng(0)
    edges = generator.integers(0, N, (2, 3 * N))
    masks = np.arange(N) % 4
    return gcnsl.from_arrays(
        generator.random((N, D)).astype(np.float32),
        edges,
        np.arange(N) % 3,
        train_mask=masks < 2,
        val_mask=masks == 2,
        test_mask=masks == 3,
    )
