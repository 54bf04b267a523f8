"""The command line: parses, calls, prints. Everything it can do, the library can do without it.

Modules that load torch are imported inside the commands, after all that can be checked without them, so that ``--help``
and whoever has mistyped something are answered at once.
"""

# In the order in which --help lists the commands.
from gcnsl.cli import graphs, train, predict, explain, compare, search, experiments, report  # noqa: F401, I001
from gcnsl.cli.app import BAD_INPUT, INTERRUPTED, app, main

__all__ = ["BAD_INPUT", "INTERRUPTED", "app", "main"]
