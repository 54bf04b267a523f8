"""``gcnsl report``: a page about a model and its graph, or about the paper's experiments."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from gcnsl.cli import shared_options as shared
from gcnsl.cli.app import app
from gcnsl.cli.console import busy, out, print_json, say
from gcnsl.cli.experiments import report_on_paper
from gcnsl.cli.graph_source import IN_A_MODEL, GraphSource, takes_graph
from gcnsl.cli.model_saving import SECONDS, open_model, write_page
from gcnsl.errors import ArgumentError, InputError


@app.command()
@partial(takes_graph, without=IN_A_MODEL)
def report(
    model: shared.OptionalModelArgument = None,
    *,
    source: GraphSource,
    output: Annotated[Path, typer.Option("--output", "-o", help="Write the page to this file.")] = Path("report.html"),
    seconds: Annotated[
        float,
        typer.Option(min=0, help="Explain nodes of the model's graph for so many seconds: a sample of a large graph."),
    ] = SECONDS,
    device: shared.DeviceOption = "auto",
    root: shared.RootOption = None,
    store: Annotated[
        Path,
        typer.Option(help="Paper: the file of results that `gcnsl reproduce` wrote."),
    ] = Path("results.jsonl"),
    markdown: Annotated[
        Path | None, typer.Option(help="Paper: also write the claims and tables in Markdown to this file.")
    ] = None,
    figures: Annotated[
        Path | None, typer.Option(help="Paper: also write the figures as SVG files to this folder.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Paper: show the runs with this seed.")] = 42,
    as_json: shared.JsonOption = False,
    quiet: shared.QuietOption = False,
) -> None:
    """Write a page that opens from disk and needs no network: about a model and its graph, or about the paper.

    With MODEL it shows the graph, how good the model is, each class, the mistakes made with confidence, and the
    neighbours of nodes with the reasons for their classes. With a GRAPH, that of training or one that has grown since,
    it measures on nodes whose labels were used neither for training nor for validation; otherwise on validation nodes
    or, where an ensemble has learned from all labels, on what its models predict for nodes they had not learned from.

    Without MODEL it shows all results of `gcnsl reproduce` beside the paper's. With --json the numbers are printed
    instead.

    Example: [bold]gcnsl report model debian -o page.html[/]

    Example: [bold]gcnsl report model --nodes nodes.csv --edges edges.csv -o page.html[/]

    Example: [bold]gcnsl report -o report.html --markdown tables.md[/]
    """
    of_paper = {"markdown": markdown, "figures": figures}
    if model is None:
        if source.is_given:
            raise InputError("a graph needs a model of it: name the folder that `gcnsl train -o` wrote (MODEL)")
        if not store.exists():
            raise ArgumentError("store", str(store), "is no file: `gcnsl reproduce` makes one")
        report_on_paper(store, output=output, **of_paper, seed=seed, as_json=as_json)
        return
    unfit = [f"--{name}" for name, path in of_paper.items() if path is not None]
    if unfit:
        raise InputError(f"{unfit[0]} is for the paper's results: leave it out, or leave out MODEL")
    with busy("Reading the model", quiet=quiet):
        classifier, data = open_model(model, device, source, root)
    name = model.resolve().name if data is None else None
    measured = write_page(classifier, output, data, name=name, seconds=seconds, quiet=quiet)
    if as_json:
        chosen_by = getattr(classifier, "chosen_by_", None)
        told = {"measured_on": measured.kind, **measured.to_dict(), "page": str(output)}
        print_json(told if chosen_by is None else told | {"chosen_by": str(chosen_by)})
        return
    say("Page", f"{output} ({output.stat().st_size / 1000:,.0f} kB), measured on {measured.in_words}", where=out)
