"""``gcnsl datasets`` and ``gcnsl inspect``: what a graph is, before anything is learned from it."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.markup import escape

from gcnsl.cli import shared_options as shared
from gcnsl.cli.app import app, column_option
from gcnsl.cli.console import busy, out, print_facts, print_json, print_table, say
from gcnsl.cli.graph_source import KEEP, GraphSource, takes_graph
from gcnsl.errors import one_line

if TYPE_CHECKING:
    from gcnsl.graph import ColumnSummary, GraphSummary

_COLUMNS_SHOWN = 30
_NAMES_SHOWN, _EXAMPLE = 20, 16
FEW_EDGES = 100
"""Shares of fewer edges say of how many."""
_NUMBERS = {"nodes": "{:,}", "edges": "{:,}", "features": "{:,}", "classes": "{:,}", "homophily": "{:.2f}"}


@app.command()
def datasets(root: shared.RootOption = None, as_json: shared.JsonOption = False) -> None:
    """List the graphs that can be loaded, with the paper's numbers beside ours.

    Example: [bold]gcnsl datasets[/]
    """
    with busy("Reading the graphs that are on this machine"):
        rows = list(_dataset_rows(root))
    if as_json:
        print_json(rows)
        return
    cells = []
    for row in rows:
        cells.append([row["name"], *(form.format(row[key]) if key in row else "–" for key, form in _NUMBERS.items())])
        if row["paper"]:
            numbers = (form.format(row["paper"][key]) for key, form in _NUMBERS.items())
            cells.append([f"[dim]{cell}[/]" for cell in ("  in the paper", *numbers)])
    caption = "Edges are distinct and undirected; as in the paper, loops count as edges, also in the homophily."
    print_table(("name", *_NUMBERS), cells, title="Graphs by name", caption=caption, right=_NUMBERS)
    for place in dict.fromkeys(row["where"] for row in rows):
        names = ", ".join(row["name"] for row in rows if row["where"] == place)
        say(place or "Not on this machine, downloaded on first use", names, where=out)


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
                "homophily": round(edge_homophily(data.edge_index, data.y, loops=True), 4),
            }
        yield row


@app.command()
@takes_graph
def inspect(
    source: GraphSource,
    split: shared.SplitOption = "random",
    seed: shared.SeedOption = 0,
    root: shared.RootOption = None,
    plot: shared.PlotOption = None,
    as_json: shared.JsonOption = False,
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
            from gcnsl.graph.summary import draw_graph

            draw_graph(data, summary, plot)
    if as_json:
        print_json(asdict(summary))
        return
    _print_summary(summary)
    if plot is not None:
        say("Picture", plot, where=out)


def _as_given(summary: "GraphSummary") -> str:
    """How the edges were listed."""
    one_way, both_ways = summary.one_way_edges, summary.edges - summary.loops - summary.one_way_edges
    if summary.arcs is not None:
        listed = "without their directions"
    elif one_way and both_ways:
        listed = f"{one_way:,} listed in one direction, {both_ways:,} in both: --directed keeps the directions"
    else:
        listed = f"each listed in {'both directions' if both_ways else 'one direction'}"
    repeats = f"; {summary.repeated_entries:,} repeated entries" if summary.repeated_entries else ""
    return f"{summary.loops:,} loops; {listed}{repeats}"


def _shares(values: dict[str, float | None]) -> str:
    return "  ".join(f"{name} –" if value is None else f"{name} {value:.3f}" for name, value in values.items())


def _counted(summary: "GraphSummary") -> str:
    """Of how many edges homophilies are shares, if not of all, or of few."""
    edges, counted = summary.edges - summary.loops, summary.labelled_edges
    if counted == 0 or (counted == edges and counted >= FEW_EDGES):
        return ""
    return f" [dim](over {counted:,} of {edges:,} edges: those between two labelled nodes)[/]"


def _print_summary(summary: "GraphSummary") -> None:
    back, of_arcs = summary.reciprocity, _shares(summary.arc_homophily)
    facts = {
        "nodes": f"{summary.nodes:,}",
        "edges": f"{summary.edges:,} [dim]({_as_given(summary)})[/]",
        "arcs": "" if summary.arcs is None else f"{summary.arcs:,}",
        "reciprocity": "" if back is None else f"{back:.1%} [dim]of the arcs also lead in the other direction[/]",
        "weights": "  ".join(f"{name} {value:,.4g}" for name, value in summary.weights.items()),
        "features": f"{summary.features:,}",
        "neighbours": "  ".join(f"{name} {value:,.1f}".removesuffix(".0") for name, value in summary.degree.items()),
        "homophily": _shares(summary.homophily) + _counted(summary),
        "homophily of arcs": of_arcs and f"{of_arcs} [dim](out: where a node points; in: what points to it)[/]",
        "isolated nodes": f"{summary.isolated_nodes:,}",
        "feature rows": f"{summary.zero_feature_rows:,} empty, {summary.repeated_feature_rows:,} equal to another's",
        "twins": f"{summary.twins:,} [dim](same label, same neighbours as another node)[/]",
    }
    if summary.split:
        facts["split"] = "  ".join(f"{name.replace('_', ' ')} {value:,}" for name, value in summary.split.items())
    if summary.leakage is not None:
        facts["leakage"] = f"{summary.leakage:.1%} [dim]of test nodes have a twin in training[/]"
    print_facts(summary.name, {name: text for name, text in facts.items() if text})
    if summary.columns:
        _print_columns(summary.columns)
    if summary.classes:
        largest = max(1, *summary.classes.values())
        sizes = summary.classes | ({"(unlabelled)": summary.unlabelled} if summary.unlabelled else {})
        first = sizes if len(sizes) <= _COLUMNS_SHOWN else dict(Counter(sizes).most_common(_COLUMNS_SHOWN))
        caption = f"{len(sizes) - len(first):,} smaller ones: --json lists all." if len(sizes) > len(first) else None
        bars = ((escape(name), f"{size:,}", "█" * min(30, round(30 * size / largest))) for name, size in first.items())
        print_table(("class", "nodes", ""), bars, title="Classes", caption=caption)
    if summary.counted_unknown:
        from gcnsl.graph.labels import unknown_in_words

        out.print(f"[yellow]![/] {escape(unknown_in_words(summary.counted_unknown, KEEP))}", highlight=False)
    for warning in summary.warnings:
        out.print(f"[yellow]![/] {escape(warning)}", highlight=False)


def _print_columns(columns: "Sequence[ColumnSummary]") -> None:
    """Print the columns of nodes and edges, those with a remark first if there are too many for a screen."""
    shown = columns if len(columns) <= _COLUMNS_SHOWN else sorted(columns, key=lambda column: column.remark is None)
    rows = []
    for column in shown[:_COLUMNS_SHOWN]:
        name = column.name if column.table == "nodes" else f"{column.table}: {column.name}"
        example = column.example if len(column.example) <= _EXAMPLE else f"{column.example[:_EXAMPLE]}…"
        becomes = f"{column.features:,}: {column.treatment}" if column.features else column.treatment
        gaps = f"{column.missing:,}" if column.missing else ""
        rows.append([escape(name), column.kind, escape(one_line(example)), f"{column.distinct:,}", gaps, becomes])
    left = len(columns) - len(rows)
    caption = f"{left:,} more: --json lists all." if left else None
    headings = ("column", "kind", "example", "values", "gaps", "features")
    print_table(headings, rows, title="Columns", caption=caption, right=headings[3:5])
    remarks: dict[tuple[str, str | None], list[str]] = defaultdict(list)
    for column in columns:
        if column.remark is not None:
            remarks[column.remark, column.remedy].append(column.name)
    for (remark, remedy), names in remarks.items():
        first, left = names[:_NAMES_SHOWN], len(names) - _NAMES_SHOWN
        which = ", ".join(map(repr, first)) + (f" and {left:,} more" if left > 0 else "")
        option = column_option(remedy, *first) + (",..." if left > 0 else "") if remedy else ""
        change = f" [dim]({escape(option)})[/]" if option else ""
        # Options that are not broken can be copied.
        out.print(f"[yellow]?[/] {escape(which)}: {remark}{change}", highlight=False, soft_wrap=True)
