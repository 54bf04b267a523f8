"""``gcnsl options``: the methods and metrics, and every hyper-parameter of one method."""

from typing import Annotated, Any

import typer
from rich.markup import escape

from gcnsl.cli import shared_options as shared
from gcnsl.cli.app import app
from gcnsl.cli.console import print_json, print_table


@app.command()
def options(
    method: Annotated[
        str | None, typer.Argument(help="A method's name; without one all methods are listed.", show_default=False)
    ] = None,
    as_json: shared.JsonOption = False,
) -> None:
    """List methods and metrics, or every hyper-parameter of one method with default, range and meaning, for --set.

    `gcnsl search` and auto look for a hyper-parameter within its search range, and leave those without one as they are.

    Example: [bold]gcnsl options h2gcn-2[/]
    """
    from gcnsl.methods import ALIASES, METHODS, find_method
    from gcnsl.options import in_words
    from gcnsl.training import METRICS

    if method is None:
        headings, title = ["method", "model", "also called"], "Methods"
        answer: dict[str, Any] = {
            name: [alias for alias, meant in ALIASES.items() if meant == name] for name in METHODS
        }
        models = {name: type(METHODS[name].config).__name__.removesuffix("Config") for name in METHODS}
        rows = [[name, models[name], ", ".join(aliases)] for name, aliases in answer.items()]
    else:
        found = find_method(method)
        headings, title = ["option", "default", "range", "search", "meaning"], f"Options of {found.name}, for --set"
        answer = {
            option.name: option._asdict() | {"search": None if option.search is None else str(option.search)}
            for option in found.described()
        }
        rows = [[part["name"], *(in_words(part[heading]) for heading in headings[1:])] for part in answer.values()]
        rows = [[escape(cell) for cell in row] for row in rows]
    if as_json:
        print_json(answer)
        return
    print_table(headings, rows, title=title)
    if method is None:
        better = {True: "more", False: "less"}
        metrics = ([name, better[each.greater_is_better], each.meaning] for name, each in METRICS.items())
        print_table(("metric", "better is", "meaning"), metrics, title="Metrics, for --metric")
