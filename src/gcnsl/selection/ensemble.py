"""The weights of models in an ensemble, chosen on nodes that the models did not learn from.

Caruana's selection (Caruana et al., 2004): beginning with the best model, the one that helps most is added again and
again, with replacement; a weight is how often a model was added. To guard against over-fitting few nodes, this is done
on several random halves of the nodes and the weights are averaged. If the ensembles of the halves are no better than
their best models on the other halves, the best model stands alone.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize_scalar

from gcnsl.selection.judge import Judge, Merit
from gcnsl.training.metrics import Floats, Ints

BAGS, ROUNDS, LARGEST_BAG = 10, 15, 1000
RANKING = ("roc-auc", "average-precision")
"""Metrics that take long to compute; models are added by the log loss instead, which they follow."""
ENOUGH_FOR_TEMPERATURE = 10_000
LEAST_WEIGHT = 0.02
"""Models with less are left out: they cost time and change nothing."""
TINY = 1e-7


def ensemble_weights(probabilities: Floats, y: Ints, judge: Judge, *, seed: int) -> Floats:
    """Weights that sum to 1 (M), of models with these probabilities (M × v × C) of nodes with these classes (v)."""
    generator, models = np.random.default_rng(seed), len(probabilities)
    alone: Floats = np.eye(models)[_best(probabilities, y, judge)]
    if models == 1 or len(y) < 4:
        return alone
    counts, gains = np.zeros(models), []
    guide = Judge("log-loss") if judge.metric in RANKING else judge
    for _ in range(BAGS):
        shuffled = generator.permutation(len(y))
        half = min(len(y) // 2, LARGEST_BAG)
        bag, others = shuffled[:half], shuffled[half : half + LARGEST_BAG]
        weights: Floats = _greedy(probabilities[:, bag], y[bag], guide)
        counts += weights
        together = judge.merit(np.tensordot(weights, probabilities[:, others], 1), y[others])
        single = judge.merit(probabilities[_best(probabilities[:, bag], y[bag], judge), others], y[others])
        gains.append(together.first - single.first)
    if not np.mean(gains) > 0:
        return alone
    kept: Floats = np.where(counts < LEAST_WEIGHT * counts.sum(), 0.0, counts)
    found: Floats = kept / kept.sum()
    return found


def _best(probabilities: Floats, y: Ints, judge: Judge) -> int:
    """The number of the best model by itself."""
    return max(range(len(probabilities)), key=lambda model: judge.merit(probabilities[model], y))


def _greedy(probabilities: Floats, y: Ints, judge: Judge) -> Floats:
    """Weights by greedy selection with replacement: the best of all rounds, as the next one may be worse at first."""
    added: list[int] = []
    reached: list[Merit] = []
    total = np.zeros_like(probabilities[0])
    for size in range(1, ROUNDS + 1):
        merits = [judge.merit((total + each) / size, y) for each in probabilities]
        added.append(max(range(len(merits)), key=lambda model: merits[model]))
        reached.append(merits[added[-1]])
        total = total + probabilities[added[-1]]
    best = max(range(ROUNDS), key=lambda size: reached[size]) + 1
    found: Floats = np.bincount(added[:best], minlength=len(probabilities)) / best
    return found


def best_temperature(probabilities: Floats, y: Ints) -> float:
    """The T for which :func:`tempered` probabilities (v × C) have the smallest log loss on nodes of these classes.

    If there are many nodes, some of them at equal distances tell it.
    """
    step = max(1, len(y) // ENOUGH_FOR_TEMPERATURE)
    probabilities, y = probabilities[::step], y[::step]

    def loss(log_temperature: float) -> float:
        own = tempered(probabilities, float(np.exp(log_temperature)))[np.arange(len(y)), y]
        return float(-np.log(own.clip(min=TINY)).mean())

    return float(np.exp(minimize_scalar(loss, bounds=(-1.5, 2.5), method="bounded").x))


def tempered(probabilities: Floats, temperature: float) -> Floats:
    """Probabilities proportional to p^(1/T): more even for T > 1, more certain for T < 1 (v × C)."""
    scaled = np.log(probabilities.clip(min=TINY)) / temperature
    powers = np.exp(scaled - scaled.max(axis=-1, keepdims=True))
    found: Floats = powers / powers.sum(axis=-1, keepdims=True)
    return found
