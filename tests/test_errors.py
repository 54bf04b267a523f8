import pickle

from hypothesis import given
from hypothesis import strategies as st

from gcnsl.errors import (
    LONGEST,
    ArgumentError,
    ColumnError,
    InputError,
    Interrupted,
    TrainingDiverged,
    one_line,
)


@given(st.text(), st.text(), st.text(max_size=100))
def test_a_message_is_one_line_whatever_it_quotes(value, name, rule) -> None:
    for error in (ArgumentError(name[:20], value * 20, rule), ColumnError(value, "drop", name), InputError(value * 20)):
        assert len(str(error)) <= LONGEST
        assert len(str(error).splitlines()) <= 1


def test_a_long_message_keeps_its_place_and_its_remedy() -> None:
    text = f"nodes.csv, row 3: {'x' * 1000}; fill it or drop the row"
    assert one_line(text).startswith("nodes.csv, row 3: xx")
    assert one_line(text).endswith("; fill it or drop the row")
    assert one_line("a\n b") == "a b"
    assert str(ArgumentError("seed", "9" * 500, "must be >= 0")).endswith("999') must be >= 0")


def test_errors_travel_between_processes() -> None:
    own = ArgumentError("epochs", 0, "must be >= 1"), ColumnError("row 3 is odd", "drop", "a")
    for error in (*own, InputError("a"), Interrupted("b"), TrainingDiverged("c")):
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error)
        assert str(again) == str(error)


def test_an_interruption_is_no_error_that_a_search_would_swallow() -> None:
    assert issubclass(Interrupted, KeyboardInterrupt)
    assert not issubclass(Interrupted, Exception)
