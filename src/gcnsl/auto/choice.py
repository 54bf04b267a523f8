"""The choice at the end of a race: which contenders make the ensemble, and with which weights."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from torch_geometric.data import Data

from gcnsl.auto.blend import Blend, Member, OutOfFold, log_probabilities
from gcnsl.auto.ensemble import best_temperature, tempered, weigh_models
from gcnsl.auto.fold_fit import reason
from gcnsl.auto.journal import Journal
from gcnsl.auto.leaderboard import ENSEMBLE, MAJORITY, leaderboard, majority_probabilities
from gcnsl.auto.learning_problem import Problem
from gcnsl.auto.race import Contender, Race
from gcnsl.auto.stored_member import StoredFits
from gcnsl.errors import InputError
from gcnsl.training import History, choose_device
from gcnsl.training.metrics import Floats

LEAST_POOL, LARGEST_POOL = 3, 15
"""At least three contenders should be compared; more than 15 are not looked at."""
ENOUGH_NODES = 1000
_LOGGER = logging.getLogger("gcnsl")


class ChosenBy(NamedTuple):
    """What contenders are compared by in the end; as a string, in words.

    Attributes:
        metric: The one that decides.
        nodes: The number of nodes.
        of: The number of all that are learned from.
        first_fold: The number of nodes of the first fold, which are among them.
        kept: Whether these are validation nodes that no model learns from.
    """

    metric: str
    nodes: int
    of: int
    first_fold: int
    kept: bool

    def __str__(self) -> str:
        if self.kept:
            return f"{self.metric} on {self.nodes:,} validation nodes, which no model has learned from"
        some = f"{self.nodes:,} of {self.of:,}" if self.nodes < self.of else f"all {self.of:,}"
        nodes = f"{some} training and validation nodes"
        return f"{self.metric} on {nodes}, each predicted by models that had not learned from it"


@dataclass(frozen=True)
class Selected:
    """What came of a selection.

    Attributes:
        blend: The ensemble, possibly of a single member.
        leaderboard: All that was tried, without test scores.
        probabilities: Of all nodes (n × C), by the names in the leaderboard.
        chosen_by: What they were compared by.
        of_first_fold: The ensemble of the members' models of the first fold alone, which have not learned from its
            nodes: probabilities of all nodes (n × C).
    """

    blend: Blend
    leaderboard: pd.DataFrame
    probabilities: dict[str, Floats]
    chosen_by: ChosenBy
    of_first_fold: Floats


class _Part(NamedTuple):
    """A contender that is chosen."""

    contender: Contender
    weight: float
    temperature: float

    def of(self, probabilities: Floats) -> Floats:
        """Its part of the ensemble, where it predicts these probabilities (n × C)."""
        return self.weight * tempered(probabilities, self.temperature)


def choose(race: Race, journal: Journal, graph: Data, history: History, *, single: bool) -> Selected:
    """The best ensemble of what is finished; contenders whose models can't be restored are left out.

    Args:
        race: The contenders.
        journal: Where their models are.
        graph: The graph of the ensemble.
        history: How long the race took, and why it ended.
        single: Whether to choose one model of one contender.

    Raises:
        InputError: If there is none.
    """
    if not race.ranking():
        failures = {c.candidate.name: c.failure for c in race.contenders.values() if c.failure}
        told = "; ".join(f"{name}: {why}" for name, why in failures.items())
        raise InputError(f"no model could be trained on this graph, look at it with `gcnsl inspect` ({told})")
    problem, level = race.problem, _common_level(race)
    pool = race.ranking(level)[: 1 if single else LARGEST_POOL]
    nodes = problem.validated(level).nonzero().flatten()
    y, given = problem.graph.y[nodes].numpy(), np.stack([race.out_of_fold(contender, level) for contender in pool])
    weights, held_out = weigh_models(given, y, race.judge, seed=problem.seed)
    chosen = [number for number in np.argsort(-weights, kind="stable").tolist() if weights[number] > 0]
    parts = [_Part(pool[number], float(weights[number]), race.temperature(pool[number], level)) for number in chosen]
    members = [_restored(part, journal, graph, problem, first=part is parts[0], single=single) for part in parts]
    if not all(members):
        return choose(race, journal, graph, history, single=single)
    temperature = best_temperature(held_out, y)
    held_out = tempered(held_out, temperature)
    probabilities: dict[str, Floats] = {MAJORITY: majority_probabilities(problem, graph.num_nodes)}
    probabilities |= {c.candidate.name: race.probabilities(c, level) for c in race.contenders.values() if c.fits}
    if single:
        probabilities[pool[0].candidate.name] = pool[0].fits[0].probabilities  # of the model that is kept
    together = np.sum([part.of(part.contender.probabilities()) for part in parts], axis=0)
    probabilities[ENSEMBLE] = tempered(together, temperature)
    blend = Blend(
        tuple(member for member in members if member is not None),
        history,
        graph,
        temperature,
        None if single else log_probabilities(probabilities[ENSEMBLE]),
        OutOfFold(nodes, torch.from_numpy(held_out).float()),
    )
    return Selected(
        blend,
        leaderboard(race, level, {part.contender: part.weight for part in parts}, held_out),
        probabilities,
        _chosen_by(race, level),
        np.sum([part.of(part.contender.fits[0].probabilities) for part in parts], axis=0),
    )


def _restored(
    part: _Part, journal: Journal, graph: Data, problem: Problem, *, first: bool, single: bool
) -> Member | None:
    """A member of the ensemble; the first is restored at once, as others are when they are needed.

    ``None`` if its models can't be restored: then it is no contender any more.
    """
    contender = part.contender
    try:
        stored = [journal.model(contender.candidate, fold) for fold in range(1 if single else contender.level)]
        fits = StoredFits(stored, graph, choose_device(problem.device))
        assert not first or fits[0]
    except Exception as error:
        _LOGGER.debug("%s can't be restored", contender.candidate.name, exc_info=True)
        contender.fits, contender.failure = [], f"failed: it can't be restored ({reason(error)})"
        return None
    return Member(contender.candidate.name, part.weight, part.temperature, fits)


def _chosen_by(race: Race, level: int) -> ChosenBy:
    learned, validated = (int(nodes.sum()) for nodes in (race.problem.learned, race.problem.validated(level)))
    first_fold = int(race.problem.validated(1).sum())
    return ChosenBy(race.judge.leading(validated), validated, learned, first_fold, race.problem.folds == 1)


def _common_level(race: Race) -> int:
    """The number of folds that contenders are compared on; those that have completed fewer are left out.

    At least three contenders of the better half, as the first fold ranks them, have completed so many. If fewer folds
    have enough nodes, it is these, as more contenders are then worth more than more nodes.
    """
    ranking, problem = race.ranking(), race.problem
    better = ranking[: max(LEAST_POOL, len(ranking) // 2)]
    completed = sorted((contender.level for contender in better), reverse=True)[:LEAST_POOL][-1]
    few = (level for level in range(1, completed) if int(problem.validated(level).sum()) >= ENOUGH_NODES)
    return next(few, completed)
