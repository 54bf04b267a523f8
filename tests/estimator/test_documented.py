import inspect

from gcnsl import GCNSLClassifier
from gcnsl.estimator.documented import option_lines, options_of, with_options_of
from gcnsl.methods import METHODS


def test_lines_say_name_range_default_and_meaning() -> None:
    lines = options_of(METHODS["h2gcn-1"].described())
    assert "rounds (whole number >= 1 and <= 8; default 1): Rounds of aggregation" in lines
    assert all(len(line) <= 112 for line in lines.splitlines())


def test_what_is_trained_otherwise_is_said() -> None:
    assert "Options of ``mixhop`` (trained with epochs=2000, lr=0.5, optimizer=sgd):" in option_lines(METHODS)


def test_they_end_a_docstring() -> None:
    @with_options_of("Options:\n    one")
    class Documented:
        """A class."""

    assert inspect.getdoc(Documented) == "A class.\n\nOptions:\n    one"
    assert "epsilon (number >= 0 and <= 1; default 0.95)" in inspect.getdoc(GCNSLClassifier)
