"""Arrays of odd types, shapes and values for everything that takes a graph.

They are refused, or they work: a classifier that could be fitted can be saved and loaded, and then predicts the same.
"""

from __future__ import annotations

import datetime
import random
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
import torch
from bench.hostile.cases import Case

import gcnsl

ENDLESS = False
N, D, E = 24, 5, 60
_rng = np.random.default_rng(0)
X, Y, EDGES = _rng.random((N, D)).astype(np.float32), np.arange(N) % 3, _rng.integers(0, N, (2, E))
METHODS = ("mlp", "gcn", "gcn-sl", "logistic")

SHAPES: dict[str, Callable[[Any], Any]] = {
    "as it is": lambda a: a,
    "a list": lambda a: a.tolist(),
    "a tensor": torch.as_tensor,
    "on its side": lambda a: a.T,
    "one entry less": lambda a: a[..., :-1],
    "one row less": lambda a: a[:-1],
    "flat": lambda a: a.ravel(),
    "one more dimension": lambda a: a[None],
    "empty": lambda a: a[..., :0],
    "a number": lambda a: a.flat[0],
    "nothing": lambda _: None,
    "a word": lambda _: "x",
    "a dictionary": lambda a: {"a": a},
    "an object": lambda _: object(),
    "uneven rows": lambda a: [[1, 2], [3]] * (len(a) // 2),
    "a frame": pd.DataFrame,
    "sparse": lambda a: sp.csr_array(np.atleast_2d(a)),
    "read-only": lambda a: np.broadcast_to(a, a.shape),
    "backwards": lambda a: a[::-1],
    "other byte order": lambda a: a.astype(a.dtype.newbyteorder()),
}
TYPES: tuple[Any, ...] = (bool, np.uint8, np.int8, np.uint64, np.float16, np.float64, complex, object, "U8", "S8")
TYPES += ("datetime64[s]", "timedelta64[s]")
ENTRIES: tuple[Any, ...] = (np.nan, np.inf, -np.inf, 1e300, -1e300, 1e-320, 2**63, -(2**63), 10**40, -1, -2, N, 1.5, 1j)
ENTRIES += (None, "", "x", "NA", "$x_$", "\0", "\ud800", b"x", True, datetime.date(2020, 1, 1), (1,), [1], object())
ENTRIES += (np.datetime64("NaT"), pd.NA)


def cases(rng: random.Random) -> Iterator[Case]:
    """Every odd array for every argument of everything."""
    labels, ids, mask, weight = Y.astype(object), np.arange(N), np.arange(N) % 4 == 0, np.ones(E)
    good = {"X": X, "y": labels, "edge_index": EDGES, "node_ids": ids, "val_mask": mask, "edge_weight": weight}
    for argument, array in good.items():
        for name, odd in odd_arrays(array):
            call = partial(round_trip, rng.choice(METHODS), {**good, argument: odd})
            yield Case("fit, save and load", f"{argument} {name}", call, str)
    for name, odd in odd_arrays(X):
        yield Case("predict", f"X {name}", partial(predictions, X=odd, edge_index=EDGES), _fault)
        for method in ("sc", "esc", "esc-anch"):
            transformer = gcnsl.SpectralFeatures(method, n_components=2)
            yield Case(f"SpectralFeatures({method})", f"X {name}", partial(transformer.fit_transform, odd), _fault)
    for name, odd in odd_arrays(EDGES):
        yield Case("predict", f"edge_index {name}", partial(predictions, X=X, edge_index=odd), _fault)
    z = X / np.linalg.norm(X, axis=1, keepdims=True)
    for name, odd in [*odd_arrays(z), *_tensors(z)]:
        yield Case("reconnected_edges", f"z {name}", partial(gcnsl.reconnected_edges, odd, epsilon=0.5))
        yield Case("reconnect", f"z {name}", partial(gcnsl.reconnect, odd, torch.ones(N, 2), epsilon=0.5))
        yield Case("reconnect", f"h {name}", partial(gcnsl.reconnect, torch.as_tensor(z), odd, epsilon=0.5))


def odd_arrays(array: np.ndarray) -> Iterator[tuple[str, Any]]:
    """Odd variants of an array, each with its name; those that it can't have are left out."""
    changes = SHAPES | {f"of type {kind}": partial(np.ndarray.astype, dtype=kind) for kind in TYPES}
    for entry in ENTRIES:
        for amount in ("one", "only"):
            changes[f"with {amount} {entry!r:.30}"] = partial(_with_entry, entry=entry, amount=amount)
            if isinstance(entry, float):
                changes[f"of floats with {amount} {entry!r}"] = partial(_floats_with, entry=entry, amount=amount)
    for name, change in changes.items():
        with suppress(TypeError, ValueError, OverflowError), np.errstate(all="ignore"):
            yield name, change(array)


def _with_entry(array: np.ndarray, entry: Any, amount: str) -> np.ndarray:
    spoilt = array.astype(object)
    for place in range(array.size) if amount == "only" else (array.size // 2,):
        spoilt.flat[place : place + 1] = [entry]
    return spoilt


def _floats_with(array: np.ndarray, entry: float, amount: str) -> np.ndarray:
    return _with_entry(array, entry, amount).astype(np.float64)


def round_trip(method: str, arguments: dict[str, Any]) -> str:
    """Fit, save, load and compare; what is wrong."""
    classifier = gcnsl.NodeClassifier(method, epochs=2, device="cpu").fit(**arguments)
    expected = classifier.predict_proba()
    with tempfile.TemporaryDirectory() as folder:
        classifier.save(Path(folder, "model"))
        again = gcnsl.NodeClassifier.load(Path(folder, "model"), device="cpu")
    if again.classes_.tolist() != classifier.classes_.tolist():
        return f"the classes are {again.classes_}, not {classifier.classes_}"
    if classifier.node_ids_ is not None and again.node_ids_.tolist() != classifier.node_ids_.tolist():
        return f"the ids are {again.node_ids_[:3]}, not {classifier.node_ids_[:3]}"
    return _fault(expected) or ("" if (again.predict_proba() == expected).all() else "it predicts something else")


def predictions(**arguments: Any) -> Any:
    """Of a model of the graph as it is."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return gcnsl.NodeClassifier("mlp", epochs=1).fit(X, Y, edge_index=EDGES).predict_proba(**arguments)


def _fault(values: Any) -> str:
    return "" if np.isfinite(np.asarray(values)).all() else "there are values that are not finite"


def _tensors(array: np.ndarray) -> Iterator[tuple[str, torch.Tensor]]:
    """Those odd variants of an array that there are as tensors."""
    for name, odd in odd_arrays(array):
        with suppress(TypeError, ValueError):
            if isinstance(odd, np.ndarray):
                yield f"as a tensor, {name}", torch.from_numpy(odd.copy())
