"""The package's own errors. Whatever a user can cause raises one of these and nothing else."""


class GcnslError(Exception):
    """Something went wrong that one sentence can explain; the command line prints it without a traceback."""


class InputError(GcnslError, ValueError):
    """Bad input: the message names the argument or file, the place, the value, and what would help."""


class DownloadError(GcnslError, OSError):
    """A dataset file is not on this machine and could not be fetched."""
