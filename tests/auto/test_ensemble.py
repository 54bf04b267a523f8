import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gcnsl.auto import ensemble
from gcnsl.auto.ensemble import FEW, best_temperature, merit, tempered, weigh_models
from gcnsl.training import METRICS
from gcnsl.training.metrics import COUNTING


def guesses(y: np.ndarray, skill: float, seed: int) -> np.ndarray:
    """Three classes; the guess is right with this probability, independently of other seeds."""
    generator = np.random.default_rng(seed)
    guess = np.where(generator.random(len(y)) < skill, y, generator.integers(3, size=len(y)))
    return np.where(np.arange(3) == guess[:, None], 0.8, 0.1)


Y = np.random.default_rng(0).integers(3, size=900)


@pytest.mark.parametrize("metric", ["accuracy", "roc-auc"])
def test_independent_models_share_the_weight_and_beat_the_best(metric) -> None:
    models = np.stack([guesses(Y, 0.6, seed) for seed in (1, 2, 3)] + [guesses(Y, 0.0, 4)])
    weights, held_out = weigh_models(models, Y, metric, seed=0)
    assert weights.sum() == pytest.approx(1)
    assert (weights[:3] > 0.15).all()
    assert weights[3] < 0.1, "one that knows nothing"
    for together in (np.tensordot(weights, models, 1), held_out):
        assert merit(metric, together, Y) > max(merit(metric, model, Y) for model in models)


def test_a_model_stands_alone_if_no_other_helps() -> None:
    at_a_loss = np.full((len(Y), 3), 1 / 3)
    models = np.stack([guesses(Y, 0.95, 2), at_a_loss, at_a_loss])
    weights, held_out = weigh_models(models, Y, "accuracy", seed=0)
    assert weights.tolist() == [1, 0, 0]
    assert (held_out == models[0]).all()
    assert weigh_models(models[:1], Y, "accuracy", seed=0).weights.tolist() == [1]
    assert weigh_models(models[:, :3], Y[:3], "accuracy", seed=0).weights.max() == 1, "too few to compare on"


@settings(max_examples=60)
@given(st.integers(1, 4), st.integers(1, 30), st.integers(2, 5), st.integers(0, 99), st.sampled_from(COUNTING))
def test_all_models_at_once_have_the_metric_of_each(models, nodes, classes, seed, metric) -> None:
    generator = np.random.default_rng(seed)
    probabilities = generator.dirichlet(np.ones(classes), size=(models, nodes)).round(1)  # with ties
    y = generator.integers(classes, size=nodes)
    expected = [METRICS[metric].gain(METRICS[metric](each, y)) for each in probabilities]
    for size in (1, 3):
        found = ensemble.gains_of(metric, size * probabilities.transpose(2, 0, 1), y, size)
        assert found == pytest.approx(expected)
    losses = ensemble.gains_of("log-loss", probabilities.transpose(2, 0, 1), y)
    assert losses == pytest.approx([merit("log-loss", each, y)[0] for each in probabilities])


def slow_greedy(probabilities, y, metric: str) -> list[float]:
    """Greedy selection as it is told: one model and one round after the other, with scikit-learn's metrics."""
    added, ways = [], []
    for _ in range(ensemble.ROUNDS):
        best = None
        for model in range(len(probabilities)):
            mean = sum(probabilities[m] for m in [*added, model]) / (len(added) + 1)
            loss = np.mean([-np.log(max(row[c], 1e-4)) for row, c in zip(mean, y, strict=True)])
            reached = (METRICS[metric].gain(METRICS[metric](mean, y)) if metric != "log-loss" else -loss, -loss)
            if best is None or reached > best[0]:
                best = reached, model
        added.append(best[1])
        ways.append((best[0], [*added]))
    chosen = max(ways, key=lambda way: way[0])[1]
    return [chosen.count(model) / len(chosen) for model in range(len(probabilities))]


@pytest.mark.parametrize("metric", [*COUNTING, "log-loss"])
def test_greedy_selection_is_that_of_a_slow_loop(metric) -> None:
    generator = np.random.default_rng(1)
    y = generator.integers(3, size=80)
    skills = generator.uniform(0.3, 2, size=6)
    probabilities = np.stack([generator.dirichlet(np.ones(3), size=80) for _ in skills])
    probabilities[:, np.arange(80), y] += skills[:, None] * generator.random((6, 80))
    probabilities /= probabilities.sum(axis=2, keepdims=True)
    found = ensemble._greedy(probabilities.transpose(2, 0, 1), y, metric)
    assert found.tolist() == pytest.approx(slow_greedy(probabilities, y, metric))


def test_it_takes_less_than_a_second_whatever_the_metric() -> None:
    generator = np.random.default_rng(0)
    y = generator.integers(5, size=5000)
    probabilities = generator.dirichlet(np.ones(5), size=(20, 5000)).astype(np.float32)
    probabilities[:, np.arange(5000), y] += 0.3
    probabilities /= probabilities.sum(axis=2, keepdims=True)
    for metric in METRICS:
        began = time.process_time()
        weigh_models(probabilities, y, metric, seed=0)
        assert time.process_time() - began < 1, metric


def test_halves_have_all_classes_and_their_shares() -> None:
    y = np.random.default_rng(0).permutation([0] * 4000 + [1] * 990 + [2] * 3 + [3] * 2)
    halves = list(ensemble._halves(y, np.random.default_rng(0)))
    assert len(halves) == ensemble.BAGS
    for bag, others in halves:
        assert not set(bag) & set(others)
        for half in (bag, others):
            assert len(half) == ensemble.LARGEST_BAG
            counts = np.bincount(y[half])
            assert (counts[2:] > 0).all(), "however rare they are"
            assert counts[:2] / 1000 == pytest.approx([0.8, 0.2], abs=0.01)


@pytest.mark.parametrize("metric", ["roc-auc", "average-precision"])
@pytest.mark.parametrize("positives", [1, 2, 3])
def test_few_positives_do_not_forbid_an_ensemble(metric, positives) -> None:
    """Five equally good models: their mean is better than any of them."""
    y, kept = np.repeat([1, 0], [positives, 200 - positives]), 0
    for seed in range(20):
        noise = np.random.default_rng(seed).normal(size=(5, 200))
        p = 1 / (1 + np.exp(4 - 1.5 * y - noise))
        models = np.stack([1 - p, p], axis=2)
        models = models[sorted(range(5), key=lambda m: merit(metric, models[m], y), reverse=True)]
        weights, held_out = weigh_models(models, y, metric, seed=seed)
        kept += np.count_nonzero(weights) > 1
        assert np.isfinite(held_out).all()
    assert kept >= 12, "3 at most, if an undefined comparison forbids it"


def test_a_node_is_predicted_with_weights_that_were_chosen_without_it(monkeypatch) -> None:
    bags = []

    def by_number(probabilities, y, guide):
        weights = np.zeros(probabilities.shape[1])
        weights[len(bags) % 4] = 1
        bags.append(y)
        return weights

    halves = list(ensemble._halves(Y, np.random.default_rng(0)))
    monkeypatch.setattr(ensemble, "_halves", lambda *_: halves)
    monkeypatch.setattr(ensemble, "_greedy", by_number)
    monkeypatch.setattr(ensemble, "_gain", lambda *_: 1.0)
    models = np.random.default_rng(1).dirichlet(np.ones(3), size=(4, len(Y)))
    held_out = weigh_models(models, Y, "log-loss", seed=0).held_out
    for node in (0, 17, 899):
        chosen = [number % 4 for number, (bag, _) in enumerate(halves) if node not in bag]
        assert len(chosen) >= 5
        assert held_out[node] == pytest.approx(np.mean([models[model, node] for model in chosen], axis=0))


@pytest.mark.parametrize("factor", [0.4, 1.0, 3.0])
def test_the_best_temperature_undoes_a_wrong_one(factor) -> None:
    generator = np.random.default_rng(0)
    honest = generator.dirichlet(np.ones(3), size=4000)
    y = np.array([generator.choice(3, p=row) for row in honest])
    assert best_temperature(tempered(honest, 1 / factor), y) == pytest.approx(factor, rel=0.1)


def sure(y: np.ndarray, right: np.ndarray, probability: float) -> np.ndarray:
    """Two classes: the right one, or the wrong one, has this probability."""
    guess = np.where(right, y, 1 - y)
    return np.where(np.arange(2) == guess[:, None], probability, 1 - probability)


@pytest.mark.parametrize(("n", "accuracy_leads"), [(FEW - 20, False), (FEW, True)])
def test_the_log_loss_leads_where_there_are_few_nodes(n, accuracy_leads) -> None:
    y = np.arange(n) % 2
    often_right = sure(y, np.arange(n) % 10 > 0, 0.9999)  # and very sure when it is wrong
    modest = sure(y, np.arange(n) % 10 > 1, 0.8)
    assert (merit("accuracy", often_right, y) > merit("accuracy", modest, y)) == accuracy_leads
    assert merit("roc-auc", often_right, y)[0] == METRICS["roc-auc"](often_right, y)
