"""A weighted ensemble of trained models, which predicts as a single one does."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from gcnsl.errors import InputError
from gcnsl.graph.edges import edge_parts
from gcnsl.methods import Fitted, Prepared
from gcnsl.methods.fitted import grown_logits
from gcnsl.selection.ensemble import TINY, tempered
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
        if self.known is not None and _same_edges(graph, self.graph):
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


def _same_edges(graph: Data, other: Data) -> bool:
    parts, others = edge_parts(graph), edge_parts(other)
    same = parts.keys() == others.keys() and all(part.equal(others[name]) for name, part in parts.items())
    return same and graph.num_nodes == other.num_nodes


def log_probabilities(probabilities: Floats) -> Tensor:
    """Logits of these probabilities (n × C)."""
    return torch.from_numpy(np.log(probabilities.clip(min=TINY))).float()
