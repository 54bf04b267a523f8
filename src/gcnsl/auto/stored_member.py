"""Trained models as plain values and tensors, without the graph, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Data

from gcnsl.auto.auto_settings import AUTO, AutoSettings
from gcnsl.auto.blend import Blend, Member, OutOfFold
from gcnsl.checks import UNLABELLED, check_number
from gcnsl.errors import InputError
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
    parts = {"model": fitted.model.state_dict(), "precomputed": precomputed, "features": features}
    tensors = {f"{part}.{name}": value for part, named in parts.items() for name, value in named.items()}
    return Stored(values, {name: value.detach().cpu().contiguous().clone() for name, value in tensors.items()})


class StoredFits(Sequence[Fitted]):
    """Models that share their inputs. They are restored when one of them is needed, as preparing inputs takes time.

    Then an :class:`gcnsl.InputError` says if that is not possible.
    """

    def __init__(self, stored: Sequence[Stored], graph: Data, device: torch.device) -> None:
        self.stored, self._where = stored, (graph, device)

    @cached_property
    def _fits(self) -> tuple[Fitted, ...]:
        try:
            return restored_fits(self.stored, *self._where)
        except (KeyError, TypeError, ValueError, RuntimeError, IndexError, AttributeError) as error:
            name = self.stored[0].plain.get("method")
            raise InputError(f"a model of {name} can't be restored ({error}): train and save it again") from error

    def __len__(self) -> int:
        return len(self.stored)

    def __getitem__(self, index: Any) -> Any:
        return self._fits[index]


def restored_fits(stored: Sequence[Stored], graph: Data, device: torch.device) -> tuple[Fitted, ...]:
    """Models that share their inputs; raises a KeyError, TypeError, ValueError or RuntimeError if one is damaged."""
    plain, tensors = stored[0]
    method = find_method(plain["method"]).with_options(**plain["options"])
    state = plain["precomputed"], below("precomputed", tensors), below("features", tensors)
    prepared = prepare(method, graph, seed=plain["seed"], device=device, state=state)
    return tuple(_restored(each, prepared) for each in stored)


def stored_blend(blend: Blend, options: Mapping[str, Any]) -> Stored:
    """What :func:`restored_blend` needs; ``options`` are those of the selection."""
    members, tensors = [], dict[str, Tensor]()
    for number, member in enumerate(blend.members):
        fits = member.fits.stored if isinstance(member.fits, StoredFits) else [stored_fit(fit) for fit in member.fits]
        seed = fits[0].plain["seed"]
        own = {"name": member.name, "weight": member.weight, "temperature": member.temperature}
        members.append(own | {"fits": [fit.plain for fit in fits]})
        for fold, fit in enumerate(fits):
            shared = fold > 0  # what belongs to the inputs is the same in all folds
            kept = {name: value for name, value in fit.tensors.items() if not shared or name.startswith("model.")}
            tensors |= {f"member.{number}.{fold}.{name}": value for name, value in kept.items()}
    values = {"method": AUTO, "options": dict(options), "seed": seed, "members": members}
    tensors["logits"] = blend.logits()
    if blend.out_of_fold is not None:
        tensors |= {f"out_of_fold.{name}": part for name, part in blend.out_of_fold._asdict().items()}
    return Stored(values | {"temperature": blend.temperature, "history": blend.history.to_dict()}, tensors)


def restored_blend(stored: Stored, graph: Data, device: torch.device) -> Blend:
    """The ensemble that was stored, on the same graph; its members are restored when they are needed."""
    members = []
    for number, plain in enumerate(stored.plain["members"]):
        parts = (below(f"member.{number}.{fold}", stored.tensors) for fold in range(len(plain["fits"])))
        fits = [Stored(values, tensors) for values, tensors in zip(plain["fits"], parts, strict=True)]
        weight = check_number("weight", plain["weight"], above=0)
        members.append(Member(str(plain["name"]), weight, _temperature(plain), StoredFits(fits, graph, device)))
    AutoSettings.check(**stored.plain["options"])
    logits, judged = stored.tensors["logits"], below("out_of_fold", stored.tensors)
    _check_rows("logits", logits, graph.num_nodes, len(graph.class_names))
    if judged:
        nodes = judged["nodes"]
        _check_rows("out_of_fold", judged["probabilities"], len(nodes), len(graph.class_names))
        if nodes.dtype != torch.int64 or not torch.isin(nodes, (graph.y != UNLABELLED).nonzero()).all():
            raise ValueError("out_of_fold has nodes without a label")
    history, temperature = History.from_dict(stored.plain["history"]), _temperature(stored.plain)
    return Blend(tuple(members), history, graph, temperature, logits, OutOfFold(**judged) if judged else None)


def _check_rows(name: str, rows: Tensor, nodes: int, classes: int) -> None:
    """Refuse what can't be a row for each of so many nodes."""
    _finite({name: rows})
    if rows.shape != (nodes, classes) or rows.dtype != torch.float32:
        raise ValueError(f"{name} are {rows.dtype} of shape {tuple(rows.shape)}")


def _temperature(plain: Mapping[str, Any]) -> float:
    return check_number("temperature", plain["temperature"], above=0)


def _restored(stored: Stored, prepared: Prepared) -> Fitted:
    model = prepared.build()
    model.load_state_dict(_finite(below("model", stored.tensors)))
    return Fitted(prepared, model.eval(), History.from_dict(stored.plain["history"]))


def _finite(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    for name, tensor in tensors.items():
        if not tensor.isfinite().all():
            raise ValueError(f"{name} holds NaN or infinity")
    return tensors


def below(part: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors whose names begin with ``part.``, by the rest of their names."""
    return {name.removeprefix(f"{part}."): value for name, value in tensors.items() if name.startswith(f"{part}.")}
