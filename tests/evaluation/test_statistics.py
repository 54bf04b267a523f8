import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from gcnsl.evaluation import paired_difference
from gcnsl.evaluation.statistics import LEVEL, paired_differences


def p_value(differences, test_share) -> float:
    return paired_difference(differences, test_share).p


def test_p_value_by_hand() -> None:
    # mean .03, s² = .00025, J = 5: t = .03 / √((1/5 + 1/4) · .00025) = √8, and with 4 degrees of freedom
    # F(t) = 1/2 + 3/8 · t/√(1 + t²/4) · (1 - t²/12 / (1 + t²/4)) = 1/2 + 3/8 · √(8/3) · 7/9
    expected = 2 * (1 / 2 - 3 / 8 * math.sqrt(8 / 3) * 7 / 9)
    differences = [0.02, 0.04, 0.03, 0.01, 0.05]
    assert p_value(differences, 0.25) == pytest.approx(expected)
    assert p_value([-d for d in differences], 0.25) == pytest.approx(expected), "two-sided"
    assert p_value(differences, 0) < 0.02 < expected < 0.05
    assert (p_value([0.0] * 3, 0.25), p_value([0.1] * 3, 0.25)) == (1, 0), "without spread"
    assert math.isnan(p_value([0.1], 0.25))


def test_two_equally_good_learners_seldom_differ() -> None:
    """Two threshold classifiers, each with a feature of its own, equally informative: any lead is luck."""
    graphs, n, train, runs = 300, 70, 49, 10
    rng = np.random.default_rng(0)
    y = np.tile([0, 1], n // 2)
    features = y + rng.normal(size=(2, graphs, n))
    differences = np.empty((graphs, runs))
    for run in range(runs):
        order = rng.permuted(np.tile(np.arange(n), (graphs, 1)), axis=1)
        accuracy = []
        for feature in features:
            x, label = np.take_along_axis(feature, order, axis=1), y[order]
            known, truth = label[:, :train], label[:, train:]
            means = [np.mean(x[:, :train], axis=1, where=known == c, keepdims=True) for c in (0, 1)]
            accuracy.append(((x[:, train:] > sum(means) / 2) == truth).mean(axis=1))
        differences[:, run] = accuracy[0] - accuracy[1]
    share = (n - train) / train
    corrected, plain = (np.mean([p_value(list(d), s) < 0.05 for d in differences]) for s in (share, 0))
    assert corrected < 0.08
    assert plain > 3 * corrected


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=12), st.floats(0, 2))
def test_interval_and_p_value_tell_the_same_story(differences, share) -> None:
    found = paired_difference(differences, share)
    assert found.mean == pytest.approx(np.mean(differences))
    if np.std(differences) > 1e-9:
        expected = stats.t.ppf(0.975, len(differences) - 1) * np.sqrt(
            np.var(differences, ddof=1) * (1 / len(differences) + share)
        )
        assert found.half_width == pytest.approx(expected)
        if abs(abs(found.mean) - found.half_width) > 1e-6:
            assert (found.p < 0.05) == (abs(found.mean) > found.half_width)


@pytest.mark.parametrize(
    ("differences", "verdict"),
    [
        ([0.0, 0.0], "equal"),
        ([0.004, 0.005, 0.004, 0.005], "equal"),
        ([0.20, 0.22, 0.21], "clear"),
        ([0.02, 0.02], "clear"),
        ([0.10, -0.04, 0.05], "undecided"),
        ([0.0], "undecided"),
    ],
)
def test_three_verdicts(differences, verdict) -> None:
    assert paired_difference(differences, 0.25).verdict == verdict


@given(st.lists(st.floats(-0.2, 0.2), min_size=2, max_size=8), st.sampled_from([0.0, 0.1, 0.4]))
def test_with_so_many_runs_it_would_be_decided_and_not_with_fewer(differences, share) -> None:
    found = paired_difference(differences, share)
    needed = found.runs_needed(share)

    def decided(runs) -> bool:
        half = stats.t.ppf(0.975, runs - 1) * np.std(differences, ddof=1) * np.sqrt(1 / runs + share)
        return bool(half <= abs(found.mean) or abs(found.mean) + half <= 0.01)

    if needed is None:
        assert not decided(100_000)
    elif np.std(differences) > 1e-9 and needed > 2:
        assert not decided(needed - 1)
        assert decided(needed + 1)


several = st.lists(st.lists(st.floats(-0.3, 0.3), min_size=3, max_size=6), min_size=1, max_size=8)


@given(several, st.sampled_from([0.0, 0.4]))
def test_several_p_values_are_corrected_as_by_holm(samples, share) -> None:
    plain = np.array([paired_difference(differences, share).p for differences in samples])
    order = np.argsort(plain)
    expected = np.empty_like(plain)
    expected[order] = np.maximum.accumulate(plain[order] * np.arange(len(plain), 0, -1)).clip(max=1)
    judged = paired_differences(samples, share)
    np.testing.assert_allclose([found.p for found in judged], expected)
    for found in judged:
        if found.std > 1e-9 and abs(abs(found.mean) - found.half_width) > 1e-9:
            assert (found.p < LEVEL) == (abs(found.mean) > found.half_width), "the interval agrees"


def test_a_difference_that_is_not_defined_costs_the_others_nothing() -> None:
    clear = [0.2, 0.22, 0.21]
    found = paired_differences([clear, [math.nan, 0.1, 0.1], [0.1]], 0.25)
    assert found[0] == paired_difference(clear, 0.25)
    assert all(math.isnan(other.p) for other in found[1:])
