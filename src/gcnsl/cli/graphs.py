"""``gcnsl datasets`` and ``gcnsl inspect``: what a graph is, before anything is learned from it."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from gcnsl.cli.app import app
from gcnsl.cli.console import busy, out, print_path
from gcnsl.cli.graph_source import GraphSource, takes_graph
from gcnsl.cli.shared_options import JsonOption, PlotOption, RootOption, SeedOption, SplitOption

if TYPE_CHECKING:
    from gcnsl.graph import GraphSummary


@app.command()
def datasets(root: RootOption = None, as_json: JsonOption = False) -> None:
    """List the graphs that can be loaded, with the paper's numbers beside ours.

    Example: [bold]gcnsl datasets[/]
    """
    with busy("Reading the graphs that are on this machine"):
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
@takes_graph
def inspect(
    source: GraphSource,
    split: SplitOption = "random",
    seed: SeedOption = 0,
    root: RootOption = None,
    plot: PlotOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a graph's size, degrees, classes and homophily, and warn about what is wrong with it.

    Example: [bold]gcnsl inspect texas --plot texas.png[/]

    Example: [bold]gcnsl inspect --nodes nodes.csv --edges edges.csv[/]
    """
    from gcnsl.graph import summarize

    with busy("Reading the graph"):
        data = source.read(split=split, seed=seed, root=root)
        summary = summarize(data)
        if plot is not None:
            from gcnsl.graph.graph_picture import draw_graph

            draw_graph(data, summary, plot)
    if as_json:
        print(json.dumps(asdict(summary), indent=2))
        return
    _print_summary(summary)
    if plot is not None:
        print_path("Picture", plot)


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
