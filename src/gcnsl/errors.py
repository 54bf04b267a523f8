"""The package's own errors. Whatever a user can cause raises one of these and nothing else."""


class GcnslError(Exception):
    """Something went wrong that one sentence can explain; the command line prints it without a traceback."""


class InputError(GcnslError, ValueError):
    """Bad input: the message names the argument or file, the place, the value, and what would help."""


class DownloadError(GcnslError, OSError):
    """A dataset file is not on this machine and could not be fetched."""


class TrainingDiverged(GcnslError, ArithmeticError):  # noqa: N818 - it says what happened
    """The loss became NaN or infinite: the message names the epoch, the learning rate and what would help."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during training: the message says what was saved and how to go on.

    It is no :class:`GcnslError`, nor any ``Exception``: whoever handles errors one by one, a search over many runs say,
    should stop too.
    """
