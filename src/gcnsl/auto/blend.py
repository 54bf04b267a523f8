"""A weighted ensemble of trained models, which predicts as a single one does; and models as they are saved."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from gcnsl.auto.auto_settings import AUTO
from gcnsl.auto.ensemble import TINY, tempered
from gcnsl.errors import InputError
from gcnsl.files import below
from gcnsl.graph.edges import edge_parts
from gcnsl.methods import Fitted, Prepared, find_method, prepare
from gcnsl.methods.fitted import grown_logits
from gcnsl.training import History
from gcnsl.training.metrics import Floats


class BlendWarning(UserWarning):
    """Some members of an ensemble can't do what is asked; the others do it."""


@dataclass(frozen=True)
class Member:
    """One candidate of an ensemble: a model for each fold, all with the same inputs.

    Attributes:
        name: What it is called in the leaderboard.
        weight: Its share in the ensemble.
        temperature: Makes its probabilities more even (> 1) or more certain (< 1).
        fits: The models.
    """

    name: str
    weight: float
    temperature: float
    fits: Sequence[Fitted]

    def probabilities(self, logits: Iterable[Tensor] | None = None) -> Floats:
        """The mean over the models (n × C) with these logits, by default those of the training graph."""
        given = (fitted.logits() for fitted in self.fits) if logits is None else logits
        return tempered(np.mean([each.softmax(dim=1).numpy() for each in given], axis=0), self.temperature)

    def grown_probabilities(self, graph: Data) -> Floats | InputError:
        """Those of a graph whose first nodes are those of the training graph, or why they can't be computed."""
        try:
            return self.probabilities(grown_logits(self.fits, graph))
        except InputError as error:
            return error


class OutOfFold(NamedTuple):
    """Labelled nodes (v), and what models that have not learned from them predict together (v × C)."""

    nodes: Tensor
    probabilities: Tensor


@dataclass(frozen=True)
class Blend:
    """The weighted mean of the members' probabilities; the heaviest member comes first.

    It predicts as :class:`gcnsl.methods.Fitted` does. ``prepared`` and ``model`` are those of the heaviest member.
    """

    members: tuple[Member, ...]
    history: History
    graph: Data
    """The training graph."""
    temperature: float = 1.0
    """That of the mean, which is less sure than its members."""
    known: Tensor | None = None
    """Logits of the training graph's nodes (n × C), if they have been computed."""
    out_of_fold: OutOfFold | None = None
    """By what it was chosen; ``None`` if it was not chosen from others."""

    @property
    def prepared(self) -> Prepared:
        """The method and the graph of the heaviest member."""
        return self.members[0].fits[0].prepared

    @property
    def model(self) -> nn.Module:
        """The first model of the heaviest member."""
        return self.members[0].fits[0].model

    def logits(self) -> Tensor:
        """Logarithms of the probabilities of the training graph's nodes (n × C)."""
        if self.known is not None:
            return self.known
        return self._mean([(member, member.probabilities()) for member in self.members])

    def grown_logits(self, graph: Data) -> Tensor:
        """The same for a graph whose first nodes are those of the training graph.

        Members that can't take new nodes are left out, with a :class:`BlendWarning`; the others share their weight.
        """
        if self.known is not None and same_edges(graph, self.graph):
            return self.known
        predicted = [(member, member.grown_probabilities(graph)) for member in self.members]
        able = [(member, part) for member, part in predicted if not isinstance(part, InputError)]
        unable = {member: part for member, part in predicted if isinstance(part, InputError)}
        if unable:
            why = next(iter(unable.values()))
            if not able:
                raise why
            share, names = sum(member.weight for member in unable), ", ".join(member.name for member in unable)
            are = f"{'is' if len(unable) == 1 else 'are'} left out of the ensemble, {share:.0%} of its weight"
            warnings.warn(f"{names} can't predict this graph and {are}: {why}", BlendWarning, stacklevel=4)
        return self._mean(able)

    def _mean(self, parts: list[tuple[Member, Floats]]) -> Tensor:
        weights = np.array([member.weight for member, _ in parts])
        mean = np.tensordot(weights / weights.sum(), np.stack([part for _, part in parts]), 1)
        return log_probabilities(tempered(mean, self.temperature))


def same_edges(graph: Data, other: Data) -> bool:
    """Whether two graphs with the same features have the same nodes and edges, so that predictions are the same."""
    parts, others = edge_parts(graph), edge_parts(other)
    same = parts.keys() == others.keys() and all(part.equal(others[name]) for name, part in parts.items())
    return same and graph.num_nodes == other.num_nodes


def log_probabilities(probabilities: Floats) -> Tensor:
    """Logits of these probabilities (n × C)."""
    return torch.from_numpy(np.log(probabilities.clip(min=TINY))).float()


class SavedModel(NamedTuple):
    """A trained model without its graph, as it is saved: values for JSON, and tensors by name."""

    plain: dict[str, Any]
    tensors: dict[str, Tensor]


def saved_model(fitted: Fitted) -> SavedModel:
    """What :func:`restored_models` needs to make the same of the same graph."""
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
    return SavedModel(values, {name: value.detach().cpu().contiguous().clone() for name, value in tensors.items()})


class SavedModels(Sequence[Fitted]):
    """Models that share their inputs. They are restored when one of them is needed, as preparing inputs takes time.

    Then an :class:`gcnsl.InputError` says if that is not possible.
    """

    def __init__(self, saved: Sequence[SavedModel], graph: Data, device: torch.device) -> None:
        self.saved, self._where = saved, (graph, device)

    @cached_property
    def _fits(self) -> tuple[Fitted, ...]:
        try:
            return restored_models(self.saved, *self._where)
        except (KeyError, TypeError, ValueError, RuntimeError, IndexError, AttributeError) as error:
            name = self.saved[0].plain.get("method")
            raise InputError(f"a model of {name} can't be restored ({error}): train and save it again") from error

    def __len__(self) -> int:
        return len(self.saved)

    def __getitem__(self, index: Any) -> Any:
        return self._fits[index]


def restored_models(saved: Sequence[SavedModel], graph: Data, device: torch.device) -> tuple[Fitted, ...]:
    """Models that share their inputs; raises a KeyError, TypeError, ValueError or RuntimeError if one is damaged."""
    plain, tensors = saved[0]
    method = find_method(plain["method"]).with_options(**plain["options"])
    state = plain["precomputed"], below("precomputed", tensors), below("features", tensors)
    prepared, fits = prepare(method, graph, seed=plain["seed"], device=device, state=state), []
    for each in saved:
        model = prepared.build()
        model.load_state_dict(below("model", each.tensors))
        fits.append(Fitted(prepared, model.eval(), History.from_dict(each.plain["history"])))
    return tuple(fits)


def saved_blend(blend: Blend, options: Mapping[str, Any]) -> SavedModel:
    """What :func:`restored_blend` needs; ``options`` are those of the selection."""
    members, tensors = [], dict[str, Tensor]()
    for number, member in enumerate(blend.members):
        fits = member.fits.saved if isinstance(member.fits, SavedModels) else [saved_model(fit) for fit in member.fits]
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
    return SavedModel(values | {"temperature": blend.temperature, "history": blend.history.to_dict()}, tensors)


def restored_blend(saved: SavedModel, graph: Data, device: torch.device) -> Blend:
    """The ensemble that was saved, on the same graph; its members are restored when they are needed."""
    plain, tensors, members = saved.plain, saved.tensors, []
    for number, own in enumerate(plain["members"]):
        parts = (below(f"member.{number}.{fold}", tensors) for fold in range(len(own["fits"])))
        fits = SavedModels([SavedModel(*both) for both in zip(own["fits"], parts, strict=True)], graph, device)
        members.append(Member(own["name"], own["weight"], own["temperature"], fits))
    judged, history = below("out_of_fold", tensors), History.from_dict(plain["history"])
    out_of_fold = OutOfFold(**judged) if judged else None
    return Blend(tuple(members), history, graph, plain["temperature"], tensors["logits"], out_of_fold)
