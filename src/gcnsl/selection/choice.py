"""The choice at the end of a race: which contenders make the ensemble, and with which weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from torch_geometric.data import Data

from gcnsl.selection.blend import Blend, Member, log_probabilities
from gcnsl.selection.ensemble import best_temperature, ensemble_weights, tempered
from gcnsl.selection.journal import Journal
from gcnsl.selection.leaderboard import ENSEMBLE, MAJORITY, leaderboard, majority_probabilities
from gcnsl.selection.race import Race
from gcnsl.selection.stored_member import StoredFits
from gcnsl.training import History, choose_device
from gcnsl.training.metrics import Floats

LEAST_POOL, LARGEST_POOL = 3, 15
"""At least three contenders should be compared; more than 15 are not looked at."""
ENOUGH_NODES = 1000


@dataclass(frozen=True)
class Selected:
    """What came of a selection.

    Attributes:
        blend: The ensemble, possibly of a single member.
        leaderboard: All that was tried, without test scores.
        probabilities: Of all nodes (n × C), by the names in the leaderboard.
    """

    blend: Blend
    leaderboard: pd.DataFrame
    probabilities: dict[str, Floats]


def choose(race: Race, journal: Journal, graph: Data, history: History, *, single: bool) -> Selected:
    """The best ensemble of what is finished.

    Args:
        race: The contenders, at least one of which has completed a fold.
        journal: Where their models are.
        graph: The graph of the ensemble.
        history: How long the race took, and why it ended.
        single: Whether to choose one model of one contender.
    """
    problem, level = race.problem, _common_level(race)
    pool = race.ranking(level)[: 1 if single else LARGEST_POOL]
    y = problem.graph.y[problem.validated(level)].numpy()
    given = [contender.out_of_fold(problem, level) for contender in pool]
    temperatures = [best_temperature(each, y) for each in given]
    stacked = np.stack([tempered(each, t) for each, t in zip(given, temperatures, strict=True)])
    weights = ensemble_weights(stacked, y, race.judge, seed=problem.seed)
    order = [number for number in np.argsort(-weights, kind="stable").tolist() if weights[number] > 0]
    chosen = {pool[number]: float(weights[number]) for number in order}
    together: Floats = np.tensordot(weights, stacked, 1)
    temperature_of_mean = best_temperature(together, y)
    validation = race.judge.value(tempered(together, temperature_of_mean), y) if len(chosen) > 1 else None
    members, mean = [], np.zeros_like(pool[0].probabilities())
    for number in order:
        contender, weight, temperature = pool[number], float(weights[number]), temperatures[number]
        stored = [journal.model(contender.candidate, fold) for fold in range(1 if single else contender.level)]
        fits = StoredFits(stored, graph, choose_device(problem.device))
        members.append(Member(contender.candidate.name, weight, temperature, fits))
        mean = mean + weight * tempered(contender.probabilities(), temperature)
    probabilities: dict[str, Floats] = {MAJORITY: majority_probabilities(problem, len(mean))}
    probabilities |= {c.candidate.name: c.probabilities() for c in race.contenders.values() if c.fits}
    if single:
        probabilities[pool[0].candidate.name] = pool[0].fits[0].probabilities  # of the model that is kept
    probabilities[ENSEMBLE] = tempered(mean, temperature_of_mean)
    known = None if single else log_probabilities(probabilities[ENSEMBLE])
    blend = Blend(tuple(members), history, temperature_of_mean, known)
    return Selected(blend, leaderboard(race, chosen, validation), probabilities)


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
