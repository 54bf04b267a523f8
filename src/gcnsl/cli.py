"""The command line: parses, calls, prints. Everything it can do, the library can do without it.

Modules that load torch are imported inside the commands, so that ``--help`` answers at once.
"""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn
from rich.table import Table

from gcnsl.errors import GcnslError, InputError

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from gcnsl.graph import GraphSummary

BAD_INPUT = 2
"""Exit code for what the user can mend: the same that wrong options have."""

app = typer.Typer(
    name="gcnsl",
    help="Node classification on graphs whose neighbours may disagree.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)
out, err = Console(), Console(stderr=True)
_settings = {"debug": False}

GraphArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="[GRAPH]", help="A dataset's name (see `gcnsl datasets`) or an npz file.", show_default=False
    ),
]
NodesOption = Annotated[Path | None, typer.Option(help="Your own graph: table of nodes (CSV, TSV or Parquet).")]
EdgesOption = Annotated[Path | None, typer.Option(help="Your own graph: table of edges.")]
IdOption = Annotated[
    str | None, typer.Option("--id", help="Column of --nodes with the ids. [default: id, or the first]")
]
LabelOption = Annotated[str | None, typer.Option(help="Column of --nodes with the classes. [default: label]")]
DropOption = Annotated[list[str] | None, typer.Option(help="Column of --nodes not to use; may be repeated.")]
SplitOption = Annotated[str, typer.Option(help="random, geom-gcn, public (citation graphs) or stored (npz files).")]
SeedOption = Annotated[int, typer.Option(help="Seed of the random splits.")]
RootOption = Annotated[Path | None, typer.Option(help="Folder with dataset files, searched first.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]


def main() -> None:
    """Run the command line; what a user can mend is one line and exit code 2."""
    try:
        app()
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


@app.command()
def datasets(root: RootOption = None, as_json: JsonOption = False) -> None:
    """List the graphs that can be loaded, with the paper's numbers beside ours.

    Example: [bold]gcnsl datasets[/]
    """
    with _busy("Reading the graphs that are on this machine"):
        rows = list(_dataset_rows(root))
    if as_json:
        print(json.dumps(rows, indent=2))
        return
    table = Table(title="Graphs by name", caption="Edges are distinct and undirected, loops counted.")
    table.add_column("name", no_wrap=True)
    for heading in _DATASET_COLUMNS:
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(row["name"], *_numbers(row))
        if row["paper"]:
            table.add_row("  in the paper", *_numbers(row["paper"]), style="dim")
    out.print(table)
    for place in dict.fromkeys(row["where"] for row in rows):
        names = ", ".join(row["name"] for row in rows if row["where"] == place)
        out.print(f"{place or 'Not on this machine, downloaded on first use'}: {names}", highlight=False)


_DATASET_COLUMNS = ("nodes", "edges", "features", "classes", "homophily")


def _numbers(row: dict[str, Any]) -> list[str]:
    styles = {"homophily": "{:.2f}"}
    return [styles.get(key, "{:,}").format(row[key]) if key in row else "–" for key in _DATASET_COLUMNS]


def _dataset_rows(root: Path | None) -> Iterator[dict[str, Any]]:
    from gcnsl.datasets import NAMES, load, where
    from gcnsl.experiments.paper import DATASETS
    from gcnsl.graph import edge_homophily

    for name in NAMES:
        paper = DATASETS[name]._asdict() if name in DATASETS else None
        row: dict[str, Any] = {"name": name, "where": where(name, root), "paper": paper}
        if row["where"] is not None:
            data = load(name, split=None, root=root)
            row |= {
                "nodes": data.num_nodes,
                "edges": data.edge_report.edges,
                "features": data.num_features,
                "classes": len(data.class_names),
                "homophily": round(edge_homophily(data.edge_index, data.y), 4),
            }
        yield row


@app.command()
def inspect(
    graph: GraphArgument = None,
    nodes: NodesOption = None,
    edges: EdgesOption = None,
    id_column: IdOption = None,
    label: LabelOption = None,
    drop: DropOption = None,
    split: SplitOption = "random",
    seed: SeedOption = 0,
    root: RootOption = None,
    plot: Annotated[Path | None, typer.Option(help="Write a picture here (.png, .svg or .pdf).")] = None,
    as_json: JsonOption = False,
) -> None:
    """Show a graph's size, degrees, classes and homophily, and warn about what is wrong with it.

    Example: [bold]gcnsl inspect texas --plot texas.png[/]

    Example: [bold]gcnsl inspect --nodes nodes.csv --edges edges.csv[/]
    """
    from gcnsl.graph import summarize

    with _busy("Reading the graph"):
        data = _read_graph(
            graph=graph,
            nodes=nodes,
            edges=edges,
            id_column=id_column,
            label=label,
            drop=drop,
            split=split,
            seed=seed,
            root=root,
        )
        summary = summarize(data)
        if plot is not None:
            from gcnsl.graph.picture import draw_graph

            draw_graph(data, summary, plot)
    if as_json:
        print(json.dumps(asdict(summary), indent=2))
        return
    _print_summary(summary)
    if plot is not None:
        out.print(f"Picture: {plot}", highlight=False)


def _read_graph(
    *,
    graph: str | None,
    nodes: Path | None,
    edges: Path | None,
    id_column: str | None,
    label: str | None,
    drop: Iterable[str] | None,
    split: str,
    seed: int,
    root: Path | None,
) -> "Data":
    """The graph that the options name, with masks wherever it has labels."""
    from gcnsl.datasets import load, with_random_split
    from gcnsl.graph import from_tables

    if (graph is None) == (nodes is None) or (nodes is None) != (edges is None):
        raise InputError("name one graph: a dataset (GRAPH), or both --nodes and --edges")
    if graph is not None:
        return load(graph, split=split, seed=seed, root=root)
    data = from_tables(nodes, edges, id=id_column, label=label, drop=list(drop or ()))
    data.name = nodes.stem if nodes is not None else None
    return data if data.y is None or "train_mask" in data else with_random_split(data, seed=seed)


def _print_summary(summary: "GraphSummary") -> None:
    facts = Table(title=summary.name, show_header=False, title_style="bold")
    facts.add_column(style="cyan")
    facts.add_column()
    degree, homophily = summary.degree, summary.homophily
    raw = f"{summary.loops:,} loops; as given: {summary.repeated_entries:,} repeats, {summary.one_way_edges:,} one-way"
    facts.add_row("nodes", f"{summary.nodes:,}")
    facts.add_row("edges", f"{summary.edges:,} [dim]({raw})[/]")
    facts.add_row("features", f"{summary.features:,}")
    facts.add_row("neighbours", "  ".join(f"{name} {value:,.1f}".removesuffix(".0") for name, value in degree.items()))
    facts.add_row(
        "homophily",
        "  ".join(f"{name} {'–' if value is None else f'{value:.3f}'}" for name, value in homophily.items()),
    )
    facts.add_row("isolated nodes", f"{summary.isolated_nodes:,}")
    facts.add_row(
        "feature rows", f"{summary.zero_feature_rows:,} empty, {summary.repeated_feature_rows:,} equal to another's"
    )
    facts.add_row("twins", f"{summary.twins:,} [dim](same label, same neighbours as another node)[/]")
    if summary.split:
        sizes = "  ".join(f"{name.replace('_', ' ')} {value:,}" for name, value in summary.split.items())
        facts.add_row("split", sizes)
    if summary.leakage is not None:
        facts.add_row("leakage", f"{summary.leakage:.1%} [dim]of test nodes have a twin in training[/]")
    out.print(facts)

    if summary.classes:
        classes = Table("class", "nodes", "", title="Classes")
        largest = max(summary.classes.values())
        for name, size in (
            summary.classes | ({"(unlabelled)": summary.unlabelled} if summary.unlabelled else {})
        ).items():
            classes.add_row(name, f"{size:,}", "█" * min(30, round(30 * size / max(largest, 1))))
        out.print(classes)
    for warning in summary.warnings:
        out.print(f"[yellow]![/] {warning}", highlight=False)


@contextmanager
def _busy(doing: str) -> Iterator[None]:
    """A spinner with a clock on stderr, gone when the work is done."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TextColumn("{task.elapsed:.0f} s"))
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as progress:
        progress.add_task(doing, total=None)
        yield
