"""All that was tried, the best first, with a verdict on each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from gcnsl.selection.judge import Judge
from gcnsl.selection.learning_problem import Problem
from gcnsl.selection.race import Contender, Race
from gcnsl.training.metrics import METRICS, Floats, Ints, class_shares

COLUMNS = (
    "model",
    "method",
    "options",
    "validation",
    "test",
    "metric",
    "train_seconds",
    "predict_seconds",
    "weight",
    "verdict",
)
NUMBERS = ("validation", "test", "train_seconds", "predict_seconds", "weight")
ENSEMBLE, MAJORITY = "ensemble", "majority class"


def leaderboard(race: Race, weights: Mapping[Contender, float], ensemble: float | None) -> pd.DataFrame:
    """A row for each contender, for the majority class and, if there is one, for the ensemble.

    Args:
        race: All contenders.
        weights: Those of the members.
        ensemble: Its metric on validation nodes; ``None`` if one contender stands alone.
    """
    rows = [_row(race, contender, weights) for contender in race.contenders.values()]
    rows.append({"model": MAJORITY, "method": MAJORITY, "validation": _of_majority(race), "verdict": "for comparison"})
    if ensemble is not None:
        members = f"{len(weights)} models by their weights"
        seconds = {f"{what}_seconds": sum(_seconds(c, what) for c in weights) for what in ("train", "predict")}
        rows.append({"model": ENSEMBLE, "method": "auto", "validation": ensemble, "verdict": members, **seconds})
    blank = {"options": {}, "test": np.nan, "train_seconds": 0.0, "predict_seconds": 0.0, "weight": 0.0}
    table = pd.DataFrame([blank | row | {"metric": race.problem.metric} for row in rows], columns=list(COLUMNS))
    gain = table["validation"].map(METRICS[race.problem.metric].gain)
    predicts = (table["model"] == ENSEMBLE) | (table["weight"] == 1)
    order = pd.DataFrame({"predicts": predicts, "gain": gain}).sort_values(["predicts", "gain"], ascending=False)
    return table.loc[order.index].reset_index(drop=True)


def with_test(table: pd.DataFrame, probabilities: Mapping[str, Floats], y: Ints) -> pd.DataFrame:
    """The leaderboard with the metric on test nodes, by their probabilities by model (t × C) and classes (t)."""
    judge = Judge(table["metric"].iloc[0])
    tested = [judge.value(probabilities[name], y) if name in probabilities else np.nan for name in table["model"]]
    return table.assign(test=tested)


def majority_probabilities(problem: Problem, nodes: int) -> Floats:
    """The shares of the classes among the nodes that may be learned from, for so many nodes (k × C)."""
    return class_shares(problem.graph.y[problem.learned].numpy(), len(problem.graph.class_names), nodes)


def _of_majority(race: Race) -> float:
    y = race.problem.graph.y[race.problem.validated(1)].numpy()
    return race.judge.value(majority_probabilities(race.problem, len(y)), y)


def _row(race: Race, contender: Contender, weights: Mapping[Contender, float]) -> dict[str, Any]:
    candidate, level = contender.candidate, contender.level
    return {
        "model": candidate.name,
        "method": candidate.method,
        "options": candidate.options,
        "validation": race.value(contender, level) if level else np.nan,
        "train_seconds": _seconds(contender, "train"),
        "predict_seconds": _seconds(contender, "predict"),
        "weight": weights.get(contender, 0.0),
        "verdict": _verdict(race, contender, weights),
    }


def _seconds(contender: Contender, what: str) -> float:
    name = "seconds" if what == "train" else "predict_seconds"
    return float(sum(getattr(fit, name) for fit in contender.fits))


def _verdict(race: Race, contender: Contender, weights: Mapping[Contender, float]) -> str:
    folds, is_ensemble = race.problem.folds, len(weights) > 1
    if contender in weights:
        return f"{weights[contender]:.0%} of the ensemble" if is_ensemble else "chosen"
    if contender.failure:
        return contender.failure
    if not contender.level:
        return "not finished in time" if contender.is_running else "skipped: no time left"
    if contender.is_cut:
        return f"cut off after {contender.fits[-1].seconds:.0f} s"
    if contender.level < folds:
        return f"dropped at fold {contender.level}/{folds}"
    return "adds nothing" if is_ensemble else "not the best"
