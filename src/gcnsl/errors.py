"""The package's own errors. Whatever a user can cause raises one of these and nothing else."""

from typing import Any


class GcnslError(Exception):
    """Something went wrong that one sentence can explain; the command line prints it without a traceback."""


class InputError(GcnslError, ValueError):
    """Bad input: the message names the argument or file, the place, the value, and what would help."""


class ArgumentError(InputError):
    """An argument has a value that it can't have.

    The parts are kept apart, so that the command line can speak of options where Python speaks of arguments.

    Args:
        argument: Its name.
        value: What was given.
        rule: What it must be, e.g. ``"must be >= 1"``.
    """

    def __init__(self, argument: str, value: Any, rule: str) -> None:
        super().__init__(argument, value, rule)
        self.argument, self.value, self.rule = argument, value, rule

    def __str__(self) -> str:
        return f"{self.argument}({self.value!r}) {self.rule}"


class DownloadError(GcnslError, OSError):
    """A dataset file is not on this machine and could not be downloaded."""


class TrainingDiverged(GcnslError, ArithmeticError):  # noqa: N818 - it says what happened
    """The loss became NaN or infinite: the message names the epoch, the learning rate and what would help."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during training: the message says what was saved and how to go on.

    It is not a :class:`GcnslError`, nor any ``Exception``: code that handles errors one by one, such as a search over
    many runs, should stop too.
    """
