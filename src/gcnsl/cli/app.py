"""The program and what holds for all of its commands: ``--debug``, Ctrl-C, and errors in one line."""

import logging
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
import typer.core

from gcnsl.cli.console import in_shell, listed, out, say
from gcnsl.cli.shared_options import PANELS
from gcnsl.errors import ArgumentError, ColumnError, GcnslError
from gcnsl.version import __version__

# torch reads these variables when it is loaded, which no command has done yet. Without the first, its threads wait for
# each other by spinning, which makes small graphs several times slower on a busy machine. Without the second, it takes
# memory in small pages, and the system spends much of an epoch of a large graph on handing them out.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")
# Processes that a command starts for its runs show no warnings of libraries, as the command itself does not.
os.environ.setdefault("PYTHONWARNINGS", "ignore")

BAD_INPUT = 2
"""Exit code for what the user can fix: the same that wrong options have."""
INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it, and after SIGTERM."""
_OTHER_NAMES = {
    "method": ("models", "methods"),
    "dataset": ("datasets",),
    "split": ("splits",),
    "experiment": ("experiments",),
    "name": ("graph",),
    "features": ("only",),
}
"""What parameters of commands are called, most of which take several of what the library takes one of."""


class _Program(typer.core.TyperGroup):
    """Commands that end with a line after Ctrl-C, and whose errors speak of options."""

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        with _one_line_if_interrupted():
            return super().make_context(*arguments, **options)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A command whose ``--help`` has headings, and no type for what is a flag."""
        headings = {name: heading for heading, names in PANELS.items() for name in names.split()}
        command: Any = super().get_command(ctx, cmd_name)
        for parameter in () if command is None else [*command.params, command.get_help_option(ctx)]:
            parameter.rich_help_panel = headings.get(parameter.name)
            parameter.metavar = "" if getattr(parameter, "is_flag", False) else parameter.metavar
        return command

    def invoke(self, ctx: Any) -> Any:
        try:
            with _one_line_if_interrupted():
                return super().invoke(ctx)
        except (ArgumentError, ColumnError) as error:
            if _settings["debug"]:
                raise
            command = self.get_command(ctx, ctx.invoked_subcommand or "")
            raise GcnslError(as_option(error, getattr(command, "params", []))) from error


@contextmanager
def _one_line_if_interrupted() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt as interruption:
        finished = str(interruption).removeprefix("interrupted ") or "before anything was finished"
        say("Interrupted", finished, "yellow")
        raise typer.Exit(INTERRUPTED) from None


def as_option(error: ArgumentError | ColumnError, parameters: list[Any]) -> str:
    """The error in the words of the command line: an argument of the command, or a hyper-parameter for ``--set``."""
    from gcnsl.methods import METHODS

    if isinstance(error, ColumnError):
        if not any(parameter.name == error.argument for parameter in parameters):
            return error.problem
        return f"{error.problem}; {column_option(error.argument, error.column)} {error.effect}"
    value = error.value if isinstance(error.value, str) else repr(error.value)
    for parameter in parameters:
        if parameter.name in (error.argument, *_OTHER_NAMES.get(error.argument, ())):
            name = parameter.opts[0] if parameter.opts[0].startswith("-") else parameter.opts[0].upper()
            return f"{name} {error.rule}" if error.value is True else f"{name} {value} {error.rule}"
    is_hyperparameter = any(error.argument in method.options() for method in METHODS.values())
    by_set = is_hyperparameter and any("--set" in parameter.opts for parameter in parameters)
    return f"--set {error.argument}={value}: it {error.rule}" if by_set else str(error)


def column_option(option: str, *columns: str) -> str:
    """An option with the names of columns, ready to be copied into a shell."""
    return f"--{option} {in_shell([listed(columns)])}"


app = typer.Typer(
    name="gcnsl",
    help="Node classification on graphs whose neighbours may disagree.",
    epilog=(
        f"Exit codes: 0 done; {BAD_INPUT} something to fix, said in one line; {INTERRUPTED} interrupted; 1 a bug, or "
        "some runs of reproduce failed."
    ),
    cls=_Program,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)
_settings: dict[str, Any] = {"debug": False, "warned": set()}


def main() -> None:
    """Run the command line; what a user can fix is one line and exit code 2."""
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning  # type: ignore[assignment]
            _settings["warned"] = set()
            app(standalone_mode=True)
    except (GcnslError, OSError) as error:
        if _settings["debug"]:
            raise
        say("Error", str(error), "bold red")
        raise SystemExit(BAD_INPUT) from None


def _show_warning(message: Warning | str, category: type[Warning], *place: Any) -> None:
    """Our own warnings are for users, and one line; others are for developers, and are shown with ``--debug`` only."""
    ours = category.__module__.startswith("gcnsl.")
    text = str(message) if ours else warnings.formatwarning(message, category, *place[:2]).strip()
    if text not in _settings["warned"] and (ours or _settings["debug"]):  # Python tells those of one line of code apart
        _settings["warned"].add(text)
        say("Warning", text, "yellow")


def _show_version(wanted: bool) -> None:
    if wanted:
        out.print(f"gcnsl {__version__}", highlight=False)
        raise typer.Exit


@app.callback()
def _root(
    debug: Annotated[bool, typer.Option("--debug", help="Show the tracebacks of errors.")] = False,
    _: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    _settings["debug"] = debug
    logger, handler = logging.getLogger("gcnsl"), logging.Handler()
    handler.emit = lambda record: say("Debug", handler.format(record))  # type: ignore[method-assign]
    logger.handlers = [handler] if debug else []  # it tells of failures that end nothing, with their tracebacks
    logger.setLevel(logging.DEBUG if debug else logging.NOTSET)
