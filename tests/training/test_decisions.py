import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcnsl import InputError
from gcnsl.training.decisions import ThresholdRule, choose_threshold, decide, prediction_sets

scored = st.lists(st.tuples(st.integers(0, 8).map(lambda k: k / 8), st.booleans()), min_size=1, max_size=14)


def tried(probability, positive, value):
    """Alerts, those that are right, and the rest of the class, counted one by one."""
    alerts = [is_one for p, is_one in zip(probability, positive, strict=True) if p >= value]
    return len(alerts), sum(alerts), sum(positive)


@pytest.mark.parametrize("text", ["f1", "precision=.75", "recall=.6", "top=3", "cost=fn:3,fp:1", "cost=fn:1,fp:5"])
@given(rows=scored)
def test_no_other_threshold_keeps_the_rule_better(text, rows) -> None:
    rule = ThresholdRule.read(text)
    probability, positive = np.array([p for p, _ in rows]), np.array([is_one for _, is_one in rows])
    chosen = choose_threshold(rule, probability, positive)
    assert (chosen.alerts, chosen.found, chosen.positives) == tried(probability, positive, chosen.value)
    all_of_them = [tried(probability, positive, value) for value in [*set(probability), 2.0]]

    def cost(alerts, found, positives):
        return rule.miss * (positives - found) + rule.alarm * (alerts - found)

    mine = chosen.alerts, chosen.found, chosen.positives
    if rule.kind == "f1" and positive.any():
        assert 2 * mine[1] / (mine[0] + mine[2]) == max(2 * f / (a + p) for a, f, p in all_of_them)
    elif rule.kind == "precision":
        good = [a for a, f, _ in all_of_them if f and f >= rule.value * a]
        assert chosen.met == bool(good)
        assert not good or mine[0] == max(good)
    elif rule.kind == "recall" and positive.any():
        assert mine[0] == min(a for a, f, p in all_of_them if f >= rule.value * p)
    elif rule.kind == "top":
        assert mine[0] == max(a for a, _, _ in all_of_them if a <= 3)
    elif rule.kind == "cost":
        assert cost(*mine) == min(cost(*counts) for counts in all_of_them)


@pytest.mark.parametrize("text", ["", "f2", "precision", "precision=0", "recall=1.5", "top=-1", "cost=fn:1", "cost=a"])
def test_rules_that_are_none(text) -> None:
    with pytest.raises(InputError, match="threshold"):
        ThresholdRule.read(text)


def test_the_likeliest_other_class_stays_where_there_is_no_alert() -> None:
    p = np.array([[0.5, 0.2, 0.3], [0.1, 0.4, 0.5], [0.45, 0.5, 0.05]])
    threshold = choose_threshold(ThresholdRule.read("recall=1"), p[:, 1], np.array([False, True, False]), positive=1)
    assert 0.2 < threshold.value <= 0.4
    assert decide(p, threshold).tolist() == [0, 1, 1]


@pytest.mark.parametrize("by_class", [False, True])
@pytest.mark.parametrize("coverage", [0.8, 0.9, 0.95])
def test_sets_cover_what_they_promise(coverage, by_class) -> None:
    draw = np.random.default_rng(0)
    covered, rare = [], []
    for _ in range(300):
        y = draw.choice(3, size=600, p=[0.6, 0.3, 0.1])
        logits = 1.5 * np.eye(3)[y] + draw.normal(size=(600, 3))
        p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        sets = prediction_sets(p[:200], y[:200], p[200:], coverage, by_class=by_class)
        hit = sets[np.arange(400), y[200:]]
        covered.append(hit.mean())
        rare.append(hit[y[200:] == 2].mean())
        assert sets.any(axis=1).all()
    # The mean over independent trials lies within 4 standard errors of a coverage between the promise and 1 / m above.
    error = 4 * np.std(covered) / math.sqrt(len(covered))
    assert coverage - error <= np.mean(covered)
    if by_class:
        assert coverage - 4 * np.std(rare) / math.sqrt(len(rare)) <= np.mean(rare)
    elif coverage >= 0.9:  # below, the likeliest class, which is always in the set, adds to it
        assert np.mean(covered) <= coverage + 1 / 201 + error


def test_few_labels_give_whole_sets() -> None:
    p = np.full((4, 2), 0.5)
    assert prediction_sets(p, np.array([0, 1, 0, 1]), p, 0.9).all()
    with pytest.raises(InputError, match="coverage"):
        prediction_sets(p, np.array([0, 1, 0, 1]), p, 1.0)
