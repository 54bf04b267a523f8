"""The leaderboard: a row for each contender, for the majority class and, if there is one, for the ensemble."""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd

from gcnsl.auto.candidates import Problem
from gcnsl.auto.race import Contender, TimedRace
from gcnsl.methods import Fitted
from gcnsl.training.metrics import METRICS, Floats, Ints, class_shares

COLUMNS = (
    *("model", "method", "options", "validation", "first_fold", "test", "metric"),
    *("train_seconds", "predict_seconds", "weight", "verdict"),
)
ENSEMBLE, MAJORITY = "ensemble", "majority class"


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
