import math

import pytest

from gcnsl.evaluation.comparison import Comparison
from gcnsl.evaluation.comparison_verdict import Difference, p_text, verdict_on

A = [0.80, 0.82, 0.81, 0.80]


def verdict(test_share=0.4, **accuracy) -> str:
    return Comparison(test_share, scores={name: {"accuracy": values} for name, values in accuracy.items()}).verdict()


@pytest.mark.parametrize(
    ("others", "sentences"),
    [
        ({}, "a has nothing to be compared with."),
        ({"b": [0.60, 0.61, 0.62, 0.60]}, "a leads; its lead over b (p < .001) is more than noise."),
        ({"b": A}, "a leads. b is within a point of it."),
        ({"b": A, "c": [0.801, 0.818, 0.81, 0.80]}, "a leads. b and c are within a point of it."),
        (
            {"b": [0.60, 0.61, 0.62, 0.60], "d": [0.50, 0.53, 0.49, 0.50], "e": [0.4, 0.4, 0.4, 0.4]},
            "a leads; its lead over b (p < .001), d (p < .001) and e (p < .001) is more than noise.",
        ),
        (
            {"b": [0.60, 0.61, 0.62, 0.60], "c": [0.83, 0.76, 0.85, 0.75]},
            "a leads; its lead over b (p < .001) is more than noise. c (p = .83) is not distinguishable from it, and "
            "no number of runs on such splits would settle it.",
        ),
    ],
)
def test_what_can_be_said_and_what_can_not(others, sentences) -> None:
    assert verdict(a=A, **others) == sentences


def lead(worse, needed) -> Difference:
    return Difference("a", worse, 0.02, 0.03, 0.2, "undecided", needed)


@pytest.mark.parametrize(
    ("leads", "sentence"),
    [
        (
            [lead("b", 12)],
            "a leads. b (p = .20) is not distinguishable from it with so few runs; about 12 would settle it.",
        ),
        (
            [lead("b", 12), lead("c", 1400)],
            "a leads. b (p = .20) and c (p = .20) are not distinguishable from it with so few runs; about 12 and 1,400 "
            "would settle it.",
        ),
        (
            [lead("b", 12), lead("c", None)],
            "a leads. b (p = .20) is not distinguishable from it with so few runs; about 12 would settle it. "
            "c (p = .20) is not distinguishable from it, and no number of runs on such splits would settle it.",
        ),
    ],
)
def test_how_many_runs_would_settle_it(leads, sentence) -> None:
    assert verdict_on("a", leads) == sentence


def test_where_splits_have_several_runs_there_are_too_few_splits() -> None:
    scores = {"a": {"accuracy": [0.8, 0.85, 0.9] * 2}, "b": {"accuracy": [0.78, 0.83, 0.84] * 2}}
    assert "so few splits; about " in Comparison(0.01, splits=3, scores=scores).verdict()
    assert "so few splits" not in Comparison(0.01, splits=6, scores=scores).verdict()


def test_with_one_split_more_seeds_always_settle_it() -> None:
    noisy = [0.83, 0.76, 0.85, 0.75]
    assert "no number of runs" in verdict(0.4, a=A, c=noisy)
    assert "would settle it" in verdict(0.0, a=A, c=noisy)


def test_one_run_says_nothing() -> None:
    assert verdict(a=[0.8], b=[0.7]).startswith("a leads, but a single run can't tell")


def test_when_guessing_is_best_it_is_said() -> None:
    told = verdict(majority=A, b=[0.60, 0.61, 0.62, 0.60])
    assert told.startswith("No method does better than always guessing the most frequent class.")


@pytest.mark.parametrize(
    ("value", "text"), [(math.nan, "–"), (0.0001, "< .001"), (0.004, ".004"), (0.03, ".03"), (0.999, "1")]
)
def test_p_values_as_statisticians_write_them(value, text) -> None:
    assert p_text(value) == text
    assert p_text(0.03, equals=True) == "= .03"


def test_a_metric_that_is_not_defined_everywhere_is_named() -> None:
    comparison = Comparison(0.4, scores={"a": {"accuracy": A}, "b": {"accuracy": [0.8, math.nan, 0.7, 0.7]}})
    assert comparison.verdict().startswith("The metric is not defined on some splits")
    assert math.isnan(comparison.std("b"))
