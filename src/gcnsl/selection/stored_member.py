"""Trained models as plain values and tensors, without the graph, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Data

from gcnsl.methods import Fitted, Prepared, find_method, prepare
from gcnsl.training import History


class Stored(NamedTuple):
    """Values for JSON, and tensors by name."""

    plain: dict[str, Any]
    tensors: dict[str, Tensor]


def stored_fit(fitted: Fitted) -> Stored:
    """What :func:`restored_fit` needs to make the same of the same graph."""
    prepared = fitted.prepared
    plain, precomputed, features = prepared.state()
    values = {
        "method": prepared.method.name,
        "options": prepared.method.options(),
        "seed": prepared.seed,
        "precomputed": plain,
        "history": fitted.history.to_dict(),
    }
    parts = {"weights": fitted.model.state_dict(), "precomputed": precomputed, "features": features}
    tensors = {f"{part}.{name}": value for part, named in parts.items() for name, value in named.items()}
    return Stored(values, {name: value.detach().cpu().contiguous().clone() for name, value in tensors.items()})


def restored_fits(stored: Sequence[Stored], graph: Data, device: torch.device) -> tuple[Fitted, ...]:
    """Models that share their inputs; raises a KeyError, TypeError, ValueError or RuntimeError if one is damaged."""
    prepared = _prepared(stored[0], graph, device)
    return tuple(_restored(each, prepared) for each in stored)


def _prepared(stored: Stored, graph: Data, device: torch.device) -> Prepared:
    plain = stored.plain
    method = find_method(plain["method"]).with_options(**plain["options"])
    state = plain["precomputed"], below("precomputed", stored.tensors), below("features", stored.tensors)
    return prepare(method, graph, seed=plain["seed"], device=device, state=state)


def _restored(stored: Stored, prepared: Prepared) -> Fitted:
    model = prepared.build()
    model.load_state_dict(below("weights", stored.tensors))
    return Fitted(prepared, model.eval(), History.from_dict(stored.plain["history"]))


def below(part: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors whose names begin with ``part.``, by the rest of their names."""
    return {name.removeprefix(f"{part}."): value for name, value in tensors.items() if name.startswith(f"{part}.")}
