import pickle

import pytest

from gcnsl import errors
from gcnsl.errors import (
    ArgumentError,
    ColumnError,
    DownloadError,
    GcnslError,
    InputError,
    Interrupted,
    TrainingDiverged,
)


def test_an_argument_error_keeps_its_parts() -> None:
    error = ArgumentError("epochs", 0, "must be >= 1")
    assert str(error) == "epochs(0) must be >= 1"
    assert (error.argument, error.value, error.rule) == ("epochs", 0, "must be >= 1")


def test_a_column_error_names_the_argument_that_helps() -> None:
    error = ColumnError("row 3 is odd", "drop", "a b")
    assert str(error) == "row 3 is odd; drop=['a b'] leaves it out"
    assert (error.problem, error.argument, error.column, error.effect) == (
        "row 3 is odd",
        "drop",
        "a b",
        "leaves it out",
    )


def test_errors_travel_between_processes() -> None:
    own = ArgumentError("epochs", 0, "must be >= 1"), ColumnError("row 3 is odd", "drop", "a")
    for error in (*own, InputError("a"), Interrupted("b"), TrainingDiverged("c")):
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error)
        assert str(again) == str(error)


@pytest.mark.parametrize(
    ("error", "builtin"),
    [
        (InputError, ValueError),
        (ArgumentError, ValueError),
        (DownloadError, OSError),
        (TrainingDiverged, ArithmeticError),
    ],
)
def test_errors_are_also_those_that_python_programs_expect(error, builtin) -> None:
    assert issubclass(error, GcnslError)
    assert issubclass(error, builtin)


def test_an_interruption_is_no_error_that_a_search_would_swallow() -> None:
    assert issubclass(Interrupted, KeyboardInterrupt)
    assert not issubclass(Interrupted, Exception)


def test_all_errors_are_documented() -> None:
    own = [value for value in vars(errors).values() if isinstance(value, type) and value.__module__ == errors.__name__]
    assert all(error.__doc__ for error in own)
