"""``gcnsl options``: the methods, and every hyper-parameter of one."""

from typing import Annotated

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
    """List the methods, or every hyper-parameter of one with its meaning, range and default, for --set.

    Example: [bold]gcnsl options h2gcn-2[/]
    """
    from gcnsl.methods import ALIASES, METHODS, find_method

    if method is None:
        names = {name: [alias for alias, meant in ALIASES.items() if meant == name] for name in METHODS}
        if as_json:
            print_json(names)
            return
        models = {name: type(METHODS[name].config).__name__.removesuffix("Config") for name in METHODS}
        rows = [[name, models[name], ", ".join(aliases)] for name, aliases in names.items()]
        print_table(("method", "model", "also called"), rows, title="Methods")
        return
    found = find_method(method)
    if as_json:
        print_json({option.name: option._asdict() for option in found.described()})
        return
    rows = [[escape(str(part)) for part in (o.name, o.default, o.range, o.meaning)] for o in found.described()]
    print_table(("option", "default", "range", "meaning"), rows, title=f"Options of {found.name}, for --set")
