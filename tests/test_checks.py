import numpy as np
import pytest

from gcnsl.checks import (
    check_generator,
    check_seed,
)
from gcnsl.errors import ArgumentError


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
