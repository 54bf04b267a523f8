"""The command line: parses, calls, prints. Everything it can do, the library can do without it.

Modules that load torch are imported inside the commands, so that ``--help`` answers at once.
"""

from gcnsl.cli import graphs, train, predict, explain, compare, search, method_options, experiments  # isort: skip - as --help has them
from gcnsl.cli.app import BAD_INPUT, INTERRUPTED, app, main

__all__ = [
    "BAD_INPUT",
    "INTERRUPTED",
    "app",
    "compare",
    "experiments",
    "explain",
    "graphs",
    "main",
    "method_options",
    "predict",
    "search",
    "train",
]
