"""``gcnsl options``: the methods, and every hyper-parameter of one."""

from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from gcnsl.cli.app import app
from gcnsl.cli.console import out, print_json
from gcnsl.cli.shared_options import JsonOption


@app.command()
def options(
    method: Annotated[
        str | None, typer.Argument(help="A method's name; without one all methods are listed.", show_default=False)
    ] = None,
    as_json: JsonOption = False,
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
        table = Table("method", "model", "also called", title="Methods")
        for name, aliases in names.items():
            model = type(METHODS[name].config).__name__.removesuffix("Config")
            table.add_row(name, model, ", ".join(aliases))
        out.print(table)
        return
    found = find_method(method)
    if as_json:
        print_json({option.name: option._asdict() for option in found.described()})
        return
    table = Table("option", "default", "range", "meaning", title=f"Options of {found.name}, for --set")
    for option in found.described():
        table.add_row(option.name, escape(str(option.default)), escape(option.range), escape(option.meaning))
    out.print(table)
