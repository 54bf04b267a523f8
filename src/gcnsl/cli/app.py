"""The program and what holds for all of its commands: ``--debug``, Ctrl-C, and errors in one line."""

import os
import warnings
from typing import Annotated, Any, TextIO

import typer
import typer.core

from gcnsl.cli.console import err
from gcnsl.errors import GcnslError

# torch's threads wait for each other by spinning, which on a busy machine makes small graphs several times slower.
# It is read when torch is loaded, which no command has done yet.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

BAD_INPUT = 2
"""Exit code for what the user can mend: the same that wrong options have."""
INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it."""
_EXIT_CODES = f"Exit codes: 0 done; {BAD_INPUT} something to mend, said in one line; {INTERRUPTED} Ctrl-C; 1 a bug."


class _Program(typer.core.TyperGroup):
    """Commands that Ctrl-C ends with a line, not with a traceback."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as interruption:
            say(
                "Interrupted",
                str(interruption).removeprefix("interrupted ") or "before anything was finished",
                "yellow",
            )
            raise typer.Exit(INTERRUPTED) from None


app = typer.Typer(
    name="gcnsl",
    help="Node classification on graphs whose neighbours may disagree.",
    epilog=_EXIT_CODES,
    cls=_Program,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)
_settings = {"debug": False}


def main() -> None:
    """Run the command line; what a user can mend is one line and exit code 2."""
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            app(standalone_mode=True)
    except (GcnslError, OSError) as error:
        if _settings["debug"]:
            raise
        say("Error", str(error), "bold red")
        raise SystemExit(BAD_INPUT) from None


def say(what: str, sentence: str, style: str) -> None:
    """One line on stderr."""
    err.print(f"{what}:", style=style, end=" ")
    err.print(sentence, markup=False, highlight=False, soft_wrap=True)


def _show_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, file: TextIO | None = None,
    line: str | None = None,
) -> None:  # fmt: skip
    """Our own warnings are for users, and one line; others are for developers, and say where they come from."""
    ours = category.__module__.startswith("gcnsl.")
    text = str(message) if ours else warnings.formatwarning(message, category, filename, lineno, line).strip()
    say("Warning", text, "yellow")


@app.callback()
def _root(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    _settings["debug"] = debug
