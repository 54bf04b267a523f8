"""A weighted ensemble of trained models, which predicts as a single one does."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch_geometric.data import Data

from gcnsl.errors import InputError
from gcnsl.methods import Fitted, Prepared
from gcnsl.selection.ensemble import TINY, tempered
from gcnsl.training import History


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
    fits: tuple[Fitted, ...]

    def probabilities(self, logits: Callable[[Fitted], Tensor]) -> NDArray[np.floating[Any]]:
        """The mean over the models (n × C)."""
        return tempered(
            np.mean([logits(fitted).softmax(dim=1).numpy() for fitted in self.fits], axis=0), self.temperature
        )


@dataclass(frozen=True)
class Blend:
    """The weighted mean of the members' probabilities; the heaviest member comes first.

    It has what :class:`gcnsl.methods.Fitted` has. ``prepared`` and ``model`` are those of the heaviest member.
    """

    members: tuple[Member, ...]
    history: History

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
        return self._mean([(member, member.probabilities(Fitted.logits)) for member in self.members])

    def grown_logits(self, graph: Data) -> Tensor:
        """The same for a graph whose first nodes are those of the training graph.

        Members that can't take new nodes are left out, with a :class:`BlendWarning`; the others share their weight.
        """
        able, unable = [], []
        for member in self.members:
            try:
                able.append((member, member.probabilities(lambda fitted: fitted.grown_logits(graph))))
            except InputError as error:
                unable.append((member, error))
        if not able:
            raise unable[0][1]
        if unable:
            share = sum(member.weight for member, _ in unable)
            names = ", ".join(member.name for member, _ in unable)
            warnings.warn(
                f"{names} can't predict this graph and {'is' if len(unable) == 1 else 'are'} left out of the ensemble, "
                f"{share:.0%} of its weight: {unable[0][1]}",
                BlendWarning,
                stacklevel=4,
            )
        return self._mean(able)

    def _mean(self, parts: list[tuple[Member, NDArray[np.floating[Any]]]]) -> Tensor:
        weights = np.array([member.weight for member, _ in parts])
        mean = np.tensordot(weights / weights.sum(), np.stack([part for _, part in parts]), 1)
        return torch.from_numpy(np.log(mean.clip(min=TINY))).float()
