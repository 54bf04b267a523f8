"""The errors of the package: whatever a user can cause raises one of these and nothing else."""

from typing import Any

LONGEST = 300
"""The largest number of characters in a message."""
_LONGEST_VALUE = 80


def one_line(text: str, longest: int = LONGEST) -> str:
    """The text in one line; if it is too long, without its middle: the place is at its start, the remedy at its end."""
    text = " ".join(text.split())
    if len(text) <= longest:
        return text
    half = longest // 2
    return f"{text[:half]} … {text[len(text) - (longest - half - 3) :]}"


class GcnslError(Exception):
    """Something went wrong that one sentence can explain. The command line prints it without a traceback.

    The message is one line of at most :data:`LONGEST` characters, whatever it quotes.
    """

    def __str__(self) -> str:
        return one_line(super().__str__())


class InputError(GcnslError, ValueError):
    """Bad input. The message names the argument or file, the place, the value and a remedy."""


class InputTypeError(InputError, TypeError):
    """Bad input where scikit-learn's conventions ask for a ``TypeError``."""


class ArgumentError(InputError):
    """An argument has a value that it can't have; the rule says what it must be, as in ``"must be >= 1"``.

    The parts are kept, so that the command line can name an option where Python names an argument.
    """

    def __init__(self, argument: str, value: Any, rule: str) -> None:
        super().__init__(argument, value, rule)
        self.argument, self.value, self.rule = argument, value, rule

    def __str__(self) -> str:
        return one_line(f"{self.argument}({one_line(repr(self.value), _LONGEST_VALUE)}) {self.rule}")


class ColumnError(InputError):
    """A column of a table has a problem for which an argument, such as ``"drop"``, with the column's name helps."""

    def __init__(self, problem: str, argument: str, column: str, effect: str = "leaves it out") -> None:
        super().__init__(problem, argument, column, effect)
        self.problem, self.argument, self.column, self.effect = problem, argument, column, effect

    def __str__(self) -> str:
        return one_line(f"{self.problem}; {self.argument}=[{self.column!r}] {self.effect}")


class DownloadError(GcnslError, OSError):
    """A dataset file is not on this machine and could not be downloaded."""


class WriteError(GcnslError, OSError):
    """A file can't be written, for example because the disk is full. The message names the file and the reason."""


class TrainingDiverged(GcnslError, ArithmeticError):  # noqa: N818 - it says what happened
    """The loss became NaN or infinite. The message names the epoch, the learning rate and a remedy."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C or SIGTERM during training. The message says what was saved and how to continue.

    ``so_far`` is what would have been returned, with the best epoch so far; ``None`` before the end of the first one.
    It is no ``Exception``, so that code which handles the errors of single runs, such as a search, stops as well.
    """

    def __init__(self, message: str, so_far: Any = None) -> None:
        super().__init__(message)
        self.so_far = so_far
