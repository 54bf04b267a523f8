"""The whole procedure: a race within a time budget, the ensemble of the best, and the leaderboard of all."""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, perf_counter
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from joblib import cpu_count
from torch_geometric.data import Data

from gcnsl.auto.auto_settings import AutoSettings
from gcnsl.auto.candidates import FoldJob, Problem, portfolio
from gcnsl.auto.ensemble import Blend, Member, OutOfFold, best_temperature, leading, log_probabilities, tempered
from gcnsl.auto.journal import Journal, SavedModels, fold_trainer
from gcnsl.auto.race import Contender, TimedRace
from gcnsl.errors import InputError, Interrupted
from gcnsl.execution import Interruption
from gcnsl.methods import Fitted
from gcnsl.runs.executor import HERE, Executor
from gcnsl.runs.jobs import reason
from gcnsl.training import History, choose_device
from gcnsl.training.metrics import METRICS, Floats, Ints, class_shares

SHARE_A_GPU, FILLS_A_GPU = 4, 1_000_000
"""So many processes train on a GPU at once; a graph with more nodes and edges than the second number keeps it busy."""
STARTING_PAYS = 15.0
"""With fewer seconds in all, this process trains by itself: others would have hardly started."""
COLUMNS = (
    *("model", "method", "options", "validation", "first_fold", "test", "metric"),
    *("train_seconds", "predict_seconds", "weight", "verdict"),
)
ENSEMBLE, MAJORITY = "ensemble", "majority class"
"""Names in the leaderboard."""
_LOGGER = logging.getLogger("gcnsl")


@dataclass(frozen=True)
class Progress:
    """How far a selection is."""

    seconds: float
    seconds_left: float
    fits: int
    """Number of finished models."""
    now: list[str]
    """Names of what is being trained."""
    best: str | None
    """The best contender so far; ``None`` before the first."""
    score: float
    """Its value of the metric on the validation nodes of the first fold."""
    metric: str


class ChosenBy(NamedTuple):
    """What contenders are compared by in the end; as a string, in words."""

    metric: str
    nodes: int
    of: int
    """The number of all nodes that are learned from."""
    first_fold: int
    """The number of nodes of the first fold, which are among those that decide."""
    kept: bool
    """Whether these are validation nodes that no model learns from."""

    def __str__(self) -> str:
        if self.kept:
            return f"{self.metric} on {self.nodes:,} validation nodes, which no model has learned from"
        some = f"{self.nodes:,} of {self.of:,}" if self.nodes < self.of else f"all {self.of:,}"
        nodes = f"{some} training and validation nodes"
        return f"{self.metric} on {nodes}, each predicted by models that had not learned from it"


@dataclass(frozen=True)
class Selected:
    """What came of a selection."""

    blend: Blend
    """The ensemble, possibly of a single member."""
    leaderboard: pd.DataFrame
    """All that was tried, without test scores."""
    probabilities: dict[str, Floats]
    """Of all nodes (n × C), by the names in the leaderboard."""
    chosen_by: ChosenBy
    of_first_fold: Floats
    """The ensemble of the members' models of the first fold alone, which have not learned from its nodes (n × C)."""


def select(
    problem: Problem,
    settings: AutoSettings,
    graph: Data,
    *,
    minutes: float | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    executor: Executor = HERE,
    on_progress: Callable[[Progress], None] | None = None,
) -> Selected:
    """Find the best ensemble within a time budget.

    Args:
        problem: What is to be learned.
        settings: How.
        graph: The problem's graph with all that predictions need, such as node ids.
        minutes: Time budget; ``None`` for that of the quality. One model is always made.
        checkpoint: Folder for finished models, from which the same selection goes on. ``None`` for none.
        executor: Who trains the models; this process has others do it, if there is time to start them.
        on_progress: Called now and then.

    Raises:
        Interrupted: On Ctrl-C or SIGTERM; ``so_far`` is what the finished models make, ``None`` if there is none.
    """
    seconds = 60 * (settings.effort.minutes if minutes is None else minutes)
    journal = Journal(None if checkpoint is None else Path(checkpoint), problem.identity)
    fits = journal.read()
    began = monotonic() - max((fit.elapsed for fit in fits), default=0.0)
    with ExitStack() as opened:
        interruption = opened.enter_context(Interruption())
        if seconds >= STARTING_PAYS:
            executor = opened.enter_context(executor.with_processes(_processes(problem, settings)))
        how: dict[str, Any] = {"trials": settings.effort.trials, "seconds": seconds, "processes": executor.slots}
        race = TimedRace(problem, portfolio(problem.graph), **how, fits=fits, journal=journal)

        def tell(elapsed: float, running: list[FoldJob]) -> None:
            if on_progress is None:
                return
            ranking, now = race.ranking(), [job.candidate.name for job in running]
            best = ranking[0].candidate.name if ranking else None
            score = race.value(ranking[0], 1) if ranking else math.nan
            left = max(0.0, race.seconds - elapsed)
            on_progress(Progress(elapsed, left, race.fits, now, best, score, problem.metric))

        def chosen(stopped: str) -> Selected:
            history = History(seconds=monotonic() - began, stopped=stopped)
            return choose(race, journal, graph, history, single=settings.single)

        try:
            stopped = race.run(executor, fold_trainer(problem), lambda: monotonic() - began, tell)
            with interruption.whole():
                return chosen(stopped)
        except KeyboardInterrupt:
            interruption.ignore_further()
            so_far = chosen("interrupted") if race.fits else None
            when = f"after {race.fits} models" if race.fits else "before a model was finished"
            raise Interrupted(f"interrupted {when}", so_far) from None


def _processes(problem: Problem, settings: AutoSettings) -> int:
    """One process on each core; some of them share a GPU if the graph is small, else one has it."""
    if settings.processes or choose_device(problem.device).type == "cpu":
        return settings.processes or cpu_count()
    is_small = problem.graph.num_nodes + problem.graph.num_edges <= FILLS_A_GPU
    return min(SHARE_A_GPU, cpu_count()) if is_small else 1


def choose(race: TimedRace, journal: Journal, graph: Data, history: History, *, single: bool) -> Selected:
    """The best ensemble of what is finished; contenders whose models can't be restored are left out.

    With ``single``, it is one model of one contender. ``journal`` has the models, and ``history`` says how long the
    race took and why it ended.
    """
    if not race.ranking():
        failures = {c.candidate.name: c.failure for c in race.contenders.values() if c.failure}
        told = "; ".join(f"{name}: {why}" for name, why in failures.items())
        raise InputError(f"no model could be trained on this graph, look at it with `gcnsl inspect` ({told})")
    problem, level, y = race.problem, race.level, race.truth(race.level)
    pool, (weights, held_out) = race.weighed()
    if single:
        weights, held_out = np.ones(1), race.out_of_fold(pool[0], level)
    order = np.argsort(-weights, kind="stable")
    chosen = {pool[number]: float(weights[number]) for number in order if weights[number] > 0}
    members: list[Member] = []
    for contender, weight in chosen.items():
        folds = range(1 if single else contender.level)
        try:
            saved = [journal.model(contender.candidate, fold) for fold in folds]
            fits = SavedModels(saved, graph, choose_device(problem.device))
            assert members or fits[0]  # the first is restored at once, others when they are needed
        except Exception as error:
            _LOGGER.debug("%s can't be restored", contender.candidate.name, exc_info=True)
            race.lose(contender, f"failed: it can't be restored ({reason(error)})")
            return choose(race, journal, graph, history, single=single)
        members.append(Member(contender.candidate.name, weight, race.temperature(contender, level), fits))

    def together(predicted: Callable[[Contender], Floats]) -> Floats:
        """The ensemble of what the chosen ones predict (n × C)."""
        tempers = (tempered(predicted(each), race.temperature(each, level)) for each in chosen)
        mean: Floats = np.sum([weight * part for weight, part in zip(chosen.values(), tempers, strict=True)], axis=0)
        return mean

    temperature = best_temperature(held_out, y)
    held_out = tempered(held_out, temperature)
    probabilities: dict[str, Floats] = {MAJORITY: majority_probabilities(problem, graph.num_nodes)}
    probabilities |= {c.candidate.name: race.probabilities(c, level) for c in race.contenders.values() if c.fits}
    if single:
        probabilities[pool[0].candidate.name] = pool[0].fits[0].probabilities  # of the model that is kept
    probabilities[ENSEMBLE] = tempered(together(Contender.probabilities), temperature)
    known, nodes = None if single else log_probabilities(probabilities[ENSEMBLE]), problem.validated(level)
    judged = OutOfFold(nodes.nonzero().flatten(), torch.from_numpy(held_out).float(), problem.fold[nodes])
    return Selected(
        Blend(tuple(members), history, graph, temperature, known, judged),
        leaderboard(race, level, chosen, held_out),
        probabilities,
        chosen_by(race),
        together(lambda contender: contender.fits[0].probabilities),
    )


def chosen_by(race: TimedRace) -> ChosenBy:
    """By what the contenders of a race are compared."""
    learned, validated = (int(nodes.sum()) for nodes in (race.problem.learned, race.problem.validated(race.level)))
    first_fold = int(race.problem.validated(1).sum())
    return ChosenBy(leading(race.problem.metric, validated), validated, learned, first_fold, race.problem.folds == 1)


def leaderboard(race: TimedRace, level: int, weights: Mapping[Contender, float], ensemble: Floats) -> pd.DataFrame:
    """A row for each contender, for the majority class and, if there is one, for the ensemble.

    What is kept comes first. The others follow by the metric on the nodes of so many folds, then those that have
    completed fewer by the metric on the first fold, then those that have completed none.

    Args:
        race: All contenders.
        level: The number of folds that those were chosen on.
        weights: Those of the members; one stands alone.
        ensemble: Probabilities of the nodes of these folds (v × C).
    """
    problem, y = race.problem, race.truth(level)
    in_first = (problem.fold[problem.validated(level)] == 0).numpy()

    def values(probabilities: Floats) -> dict[str, float]:
        metric = METRICS[problem.metric]
        return {"validation": metric(probabilities, y), "first_fold": metric(probabilities[in_first], y[in_first])}

    rows: list[dict[str, Any]] = [
        {
            "model": each.candidate.name,
            "method": each.candidate.method,
            "options": each.candidate.options,
            "validation": race.value(each, level) if each.level >= level else np.nan,
            "first_fold": race.value(each, 1) if each.level else np.nan,
            "train_seconds": float(sum(fit.seconds for fit in each.fits)),
            "predict_seconds": float(sum(fit.predict_seconds for fit in each.fits)),
            "weight": weights.get(each, 0.0),
            "verdict": _verdict(race, each, weights),
        }
        for each in race.contenders.values()
    ]
    guess = values(majority_probabilities(problem, len(y)))
    rows.append({"model": MAJORITY, "method": MAJORITY, "verdict": "for comparison", **guess})
    if len(weights) > 1:
        of_members = [row for row in rows if row.get("weight")]
        spent = {name: sum(row[name] for row in of_members) for name in ("train_seconds", "predict_seconds")}
        verdict = f"{len(weights)} models by their weights"
        rows.append({"model": ENSEMBLE, "method": "auto", "verdict": verdict, **values(ensemble), **spent})
    blank = {"options": {}, "test": np.nan, "train_seconds": 0.0, "predict_seconds": 0.0, "weight": 0.0}
    table = pd.DataFrame([blank | row | {"metric": problem.metric} for row in rows], columns=list(COLUMNS))
    order = table[["validation", "first_fold"]].map(METRICS[problem.metric].gain)
    order.insert(0, "is_kept", (table["model"] == ENSEMBLE) | (table["weight"] == 1))
    return table.loc[order.sort_values(list(order), ascending=False).index].reset_index(drop=True)


def with_distilled(table: pd.DataFrame, problem: Problem, student: Fitted) -> tuple[pd.DataFrame, dict[str, Floats]]:
    """The leaderboard with a model that has learned from the first of its rows, and is kept in its place.

    It has learned from all nodes but those of the first fold, and is measured on no others. Also returns what it
    predicts for all nodes (n × C), by its name.
    """
    began, first_fold, method = perf_counter(), problem.validated(1), student.prepared.method
    name = f"{method.title}, distilled"
    probabilities = student.logits().softmax(dim=1).numpy()
    score = METRICS[problem.metric](probabilities[first_fold.numpy()], problem.graph.y[first_fold].numpy())
    row = {
        "model": name,
        "method": method.name,
        "options": method.options(),
        "validation": score if _is_first_fold_alone(table) else np.nan,
        "first_fold": score,
        "test": np.nan,
        "metric": problem.metric,
        "train_seconds": student.history.seconds,
        "predict_seconds": perf_counter() - began,
        "weight": 1.0,
        "verdict": f"chosen, taught by the {'ensemble' if table.loc[0, 'model'] == ENSEMBLE else 'next'}",
    }
    others = table.assign(weight=0.0)
    return pd.concat([pd.DataFrame([row]), others], ignore_index=True), {name: probabilities}


def shown_scores(table: pd.DataFrame) -> list[str]:
    """The columns of scores that tell anything; not that of the first fold, if models were chosen by no others."""
    columns = ["validation", *([] if _is_first_fold_alone(table) else ["first_fold"]), "test"]
    return [name for name in columns if table[name].notna().any()]


def _is_first_fold_alone(table: pd.DataFrame) -> bool:
    return bool(table["validation"].equals(table["first_fold"]))


def with_test(table: pd.DataFrame, probabilities: Mapping[str, Floats], y: Ints) -> pd.DataFrame:
    """The leaderboard with the metric on test nodes, by their probabilities by model (t × C) and classes (t)."""
    metric = METRICS[table["metric"].iloc[0]]
    tested = [metric(probabilities[name], y) if name in probabilities else np.nan for name in table["model"]]
    return table.assign(test=tested)


def majority_probabilities(problem: Problem, nodes: int) -> Floats:
    """The shares of the classes among the nodes that may be learned from, for so many nodes (k × C)."""
    return class_shares(problem.graph.y[problem.learned].numpy(), len(problem.graph.class_names), nodes)


def _verdict(race: TimedRace, contender: Contender, weights: Mapping[Contender, float]) -> str:
    is_ensemble = len(weights) > 1
    if contender in weights:
        kept = f"{weights[contender]:.0%} of the ensemble" if is_ensemble else "chosen"
        return f"{kept}, then {contender.failure}" if contender.failure else kept
    if contender.failure or not contender.level:
        return contender.failure or ("not finished in time" if contender.is_running else "skipped: no time left")
    if contender.fits[-1].is_cut:
        return f"cut off after {contender.fits[-1].seconds:.0f} s"
    if contender.same_as:
        return f"predicts the same as {contender.same_as}"
    of_no_use = "adds nothing" if is_ensemble else "not the best"
    return of_no_use if contender.level >= race.folds else f"dropped at fold {contender.level}/{race.folds}"
