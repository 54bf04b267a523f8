import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gcnsl.selection.ensemble import best_temperature, ensemble_weights, tempered
from gcnsl.selection.judge import Judge

LOG_LOSS = Judge("log-loss")


def guesses(y: np.ndarray, skill: float, seed: int) -> np.ndarray:
    """Three classes; the guess is right with this probability, independently of other seeds."""
    generator = np.random.default_rng(seed)
    guess = np.where(generator.random(len(y)) < skill, y, generator.integers(3, size=len(y)))
    return np.where(np.arange(3) == guess[:, None], 0.8, 0.1)


Y = np.random.default_rng(0).integers(3, size=900)


@pytest.mark.parametrize("metric", ["accuracy", "roc-auc"])
def test_independent_models_share_the_weight_and_beat_the_best(metric) -> None:
    models = np.stack([guesses(Y, 0.6, seed) for seed in (1, 2, 3)] + [guesses(Y, 0.0, 4)])
    judge = Judge(metric)
    weights = ensemble_weights(models, Y, judge, seed=0)
    assert weights.sum() == pytest.approx(1)
    assert (weights[:3] > 0.15).all()
    assert weights[3] < 0.1, "one that knows nothing"
    together = judge.merit(np.tensordot(weights, models, 1), Y)
    assert together > max(judge.merit(model, Y) for model in models)


def test_a_model_stands_alone_if_no_other_helps() -> None:
    at_a_loss = np.full((len(Y), 3), 1 / 3)
    models = np.stack([at_a_loss, guesses(Y, 0.95, 2), at_a_loss])
    weights = ensemble_weights(models, Y, Judge("accuracy"), seed=0)
    assert weights.tolist() == [0, 1, 0]
    assert ensemble_weights(models[:1], Y, Judge("accuracy"), seed=0).tolist() == [1]
    assert ensemble_weights(models[:, :3], Y[:3], Judge("accuracy"), seed=0).max() == 1, "too few nodes to compare on"


@settings(max_examples=15)
@given(st.integers(1, 5), st.integers(1, 40), st.integers(2, 4), st.integers(0, 9))
def test_weights_are_shares(models, nodes, classes, seed) -> None:
    generator = np.random.default_rng(seed)
    probabilities = generator.dirichlet(np.ones(classes), size=(models, nodes))
    weights = ensemble_weights(probabilities, generator.integers(classes, size=nodes), LOG_LOSS, seed=seed)
    assert weights.shape == (models,)
    assert weights.min() >= 0
    assert weights.sum() == pytest.approx(1)


@pytest.mark.parametrize("factor", [0.4, 1.0, 3.0])
def test_the_best_temperature_undoes_a_wrong_one(factor) -> None:
    generator = np.random.default_rng(0)
    honest = generator.dirichlet(np.ones(3), size=4000)
    y = np.array([generator.choice(3, p=row) for row in honest])
    assert best_temperature(tempered(honest, 1 / factor), y) == pytest.approx(factor, rel=0.1)


@given(st.floats(0.3, 5), st.integers(0, 9))
def test_tempering_keeps_the_order_of_the_classes(temperature, seed) -> None:
    given_probabilities = np.random.default_rng(seed).dirichlet(np.ones(4), size=20)
    changed = tempered(given_probabilities, temperature)
    assert changed.sum(axis=1) == pytest.approx(np.ones(20))
    assert (changed.argsort(axis=1) == given_probabilities.argsort(axis=1)).all()
    if temperature > 1:
        assert (changed.max(axis=1) <= given_probabilities.max(axis=1) + 1e-9).all()
