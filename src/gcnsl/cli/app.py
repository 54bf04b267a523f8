"""The program and what holds for all of its commands: ``--debug``, and errors in one line."""

from typing import Annotated

import typer

from gcnsl.cli.console import err
from gcnsl.errors import GcnslError

BAD_INPUT = 2
"""Exit code for what the user can mend: the same that wrong options have."""
INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it."""

app = typer.Typer(
    name="gcnsl",
    help="Node classification on graphs whose neighbours may disagree.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)
_settings = {"debug": False}


def main() -> None:
    """Run the command line; what a user can mend is one line and exit code 2."""
    try:
        app(standalone_mode=True)
    except (GcnslError, OSError) as error:
        if _settings["debug"]:
            raise
        err.print("[bold red]Error:[/]", end=" ")
        err.print(str(error), markup=False, highlight=False, soft_wrap=True)
        raise SystemExit(BAD_INPUT) from None


@app.callback()
def _root(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    _settings["debug"] = debug
