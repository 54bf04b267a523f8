import numpy as np
import pytest

from gcnsl.checks import (
    LARGEST,
    check_generator,
    check_number,
    check_seed,
    check_whole,
)
from gcnsl.errors import ArgumentError


@pytest.mark.parametrize(
    ("value", "bounds", "message"),
    [
        (0, {"least": 1}, "runs(0) must be >= 1"),
        (np.int64(0), {"least": 1, "most": 9}, "runs(np.int64(0)) must be from 1 to 9"),
        (10, {"most": 9, "why": "the graph has 10 splits"}, "runs(10) must be from 0 to 9: the graph has 10 splits"),
        (10**40, {"least": 2}, f"runs({10**40}) must be from 2 to {LARGEST}"),
        (2.0, {"least": 1}, "runs(2.0) must be a whole number >= 1"),
        ("2", {"least": 1, "most": 9}, "runs('2') must be a whole number from 1 to 9"),
        (True, {}, "runs(True) must be a whole number >= 0"),
    ],
)
def test_other_values_are_no_whole_numbers_in_range(value, bounds, message) -> None:
    with pytest.raises(ArgumentError) as refusal:
        check_whole("runs", value, **bounds)
    assert str(refusal.value) == message


@pytest.mark.parametrize(
    ("value", "bounds", "message"),
    [
        (-1, {"least": 0}, "share(-1) must be >= 0"),
        (0, {"above": 0, "below": 1}, "share(0) must be > 0 and < 1"),
        (1.5, {"least": 0, "most": 1, "why": "it is a share"}, "share(1.5) must be >= 0 and <= 1: it is a share"),
        (float("nan"), {}, "share(nan) must be finite"),
        (float("inf"), {"least": 0}, "share(inf) must be finite and >= 0"),
        ("1", {"least": 0}, "share('1') must be a number >= 0"),
        (True, {}, "share(True) must be a number"),
    ],
)
def test_other_values_are_no_numbers_in_range(value, bounds, message) -> None:
    with pytest.raises(ArgumentError) as refusal:
        check_number("share", value, **bounds)
    assert str(refusal.value) == message


def test_an_integer_beyond_floats_is_refused() -> None:
    with pytest.raises(ArgumentError, match="must be finite"):
        check_number("share", -(10**400))


def test_seeds_are_what_generators_take() -> None:
    assert check_seed(2**32 - 1) == 2**32 - 1
    for value in (-1, 2**32, 1.5, "1", True, None):
        with pytest.raises(ArgumentError, match=r"seed\(.*\) must be (a whole number )?from 0 to 4294967295"):
            check_seed(value)


def test_generators_are_what_scikit_learn_takes() -> None:
    generator = np.random.RandomState(3)
    assert check_generator(generator) is generator
    assert check_generator(3).randint(100) == np.random.RandomState(3).randint(100)
    for value in ([1], object(), np.random.default_rng(0)):
        with pytest.raises(ArgumentError, match=r"random_state\(.*\) must be a seed, a numpy.random.RandomState or"):
            check_generator(value)
    for value in (-1, 1.5, "x", True):
        with pytest.raises(ArgumentError, match=r"random_state\(.*\) must be (a whole number )?from 0"):
            check_generator(value)
