"""``gcnsl compare``."""

import math
from dataclasses import asdict
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from gcnsl.cli.app import app, say
from gcnsl.cli.console import busy, out, print_json, runs_shown
from gcnsl.cli.graph_source import GraphSource, takes_graph
from gcnsl.cli.hyperparameters import Start, methods_with, read_options
from gcnsl.cli.options import (
    DeviceOption,
    JsonOption,
    PlotOption,
    QuietOption,
    RootOption,
    SearchedOption,
    SettingsOption,
    SplitOption,
    TrainingSeedOption,
)
from gcnsl.errors import InputError

if TYPE_CHECKING:
    from gcnsl.experiments.comparison import Comparison

USUAL_MODELS = ("mlp", "gcn", "h2gcn-2", "gcn-sl-cc")
"""What is compared unless one says otherwise: without the graph, with it, made for disagreeing neighbours, and ours."""
USUAL_RUNS = 10
LEVEL = 0.05
"""A lead with a smaller p-value is called more than noise."""


@app.command()
@takes_graph
def compare(
    source: GraphSource,
    models: Annotated[
        str | None, typer.Option(help=f"Names with commas between. \\[default: {','.join(USUAL_MODELS)}]")
    ] = None,
    runs: Annotated[
        int | None, typer.Option(min=1, help=f"Splits. \\[default: {USUAL_RUNS}, or as many as the graph comes with]")
    ] = None,
    split: SplitOption = "random",
    options: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="[MODEL.]KEY=VALUE", help="A hyper-parameter, of one model or of all; may be repeated."
        ),
    ] = None,
    searched: SearchedOption = False,
    settings: SettingsOption = None,
    seed: TrainingSeedOption = 0,
    device: DeviceOption = "auto",
    plot: PlotOption = None,
    root: RootOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Train several methods on the same splits of a graph and say which suits it, and whether that is more than luck.

    The p-values are those of a paired t-test with Nadeau and Bengio's correction for training sets that overlap.
    Ctrl-C shows what is finished.

    Example: [bold]gcnsl compare debian --models mlp,gcn,gcn-sl --plot comparison.png[/]

    Example: [bold]gcnsl compare --nodes nodes.csv --edges edges.csv --set epochs=200 --set gcn-sl.epsilon=0.8[/]
    """
    chosen = read_options(options)
    with busy("Reading the graph", quiet=quiet):
        from gcnsl.experiments.comparison import ComparisonInterrupted
        from gcnsl.experiments.comparison import compare as compare_methods
        from gcnsl.methods import METHODS, split_count
        from gcnsl.pictures import check_picture

        if plot is not None:
            check_picture(plot)
        names = [name for name in USUAL_MODELS if name in METHODS] if models is None else _names(models)
        methods = methods_with(names, Start(source.graph, searched, settings), chosen)
        data = source.read(split=split, seed=seed, runs=runs or USUAL_RUNS, root=root)
        if "train_mask" not in data:
            raise InputError("the graph has no labels: name the column that holds the classes (--label), and fill it")
        runs = runs or min(USUAL_RUNS, split_count(data))
    name, stopped = data.get("name") or "graph", None
    try:
        with runs_shown(runs * len(methods), quiet=quiet) as (begin, show):
            comparison = compare_methods(
                data, methods, runs=runs, seed=seed, device=device, on_run=begin, on_epoch=show
            )
    except ComparisonInterrupted as interruption:
        comparison, stopped = interruption.finished, interruption
    if comparison.accuracy and plot is not None:
        from gcnsl.experiments.comparison_picture import draw_comparison

        draw_comparison(comparison, plot, graph=name)
    if as_json:
        print_json({"graph": name, "complete": stopped is None} | _as_json(comparison))
    elif comparison.accuracy:
        _print_comparison(comparison, name)
        if plot is not None:
            out.print(f"Picture: {plot}", highlight=False, markup=False, soft_wrap=True)
    for method, why in comparison.failures.items():
        say("Left out", f"{method}, {why}", "yellow")
    if stopped is not None:
        raise stopped


def _names(models: str) -> list[str]:
    names = [name.strip() for name in models.split(",") if name.strip()]
    if not names:
        raise InputError(f"--models {models!r} names none: give some with commas between, for example mlp,gcn-sl")
    return names


def _as_json(comparison: "Comparison") -> dict[str, Any]:
    return {
        "level": LEVEL,
        "methods": [
            {
                "name": name,
                "mean": comparison.mean(name),
                "std": comparison.std(name),
                "accuracy": comparison.accuracy[name],
                "seconds": comparison.seconds[name],
                "epochs": comparison.epochs[name],
                "options": comparison.options[name],
            }
            for name in comparison.ranking
        ],
        "differences": [asdict(difference) for difference in comparison.differences],
        "verdict": verdict(comparison) if comparison.accuracy else None,
        "failures": comparison.failures,
    }


def _print_comparison(comparison: "Comparison", graph: str) -> None:
    counts = {len(accuracy) for accuracy in comparison.accuracy.values()}
    runs = f"{max(counts)} run{'s' if max(counts) > 1 else ''}" if len(counts) == 1 else "runs as far as finished"
    table = Table(title=f"{graph}, {runs}", title_style="bold", title_justify="left")
    table.add_column("method")
    for heading in ("test accuracy", "best leads by", "p", "epochs", "time", *(["runs"] if len(counts) > 1 else [])):
        table.add_column(heading, justify="right")
    for name in comparison.ranking:
        lead = comparison.against_best(name)
        like_best = lead is not None and not lead.p < LEVEL
        table.add_row(
            f"{name} [dim]≈ best[/]" if like_best else name,
            _accuracy(comparison, name),
            "" if lead is None else f"{100 * lead.mean:.1f}",
            "" if lead is None else _p(lead.p),
            f"{fmean(comparison.epochs[name]):.0f}",
            f"{comparison.seconds[name]:.1f} s",
            *([str(len(comparison.accuracy[name]))] if len(counts) > 1 else []),
            style="bold" if lead is None else "",
        )
    out.print(table)
    if len(comparison.accuracy) > 1:
        out.print(verdict(comparison), highlight=False, soft_wrap=True)


def verdict(comparison: "Comparison") -> str:
    """The table in plain words."""
    best, *others = comparison.ranking
    if not others:
        return f"{best} has nothing to be compared with."
    leads = [(name, comparison.against_best(name)) for name in others]
    if any(lead is None or math.isnan(lead.p) for _, lead in leads):
        return f"{best} leads, but one run can't tell a lead from noise: take more."
    clear = [f"{name} (p {_p(lead.p, equals=True)})" for name, lead in leads if lead is not None and lead.p < LEVEL]
    unclear = [f"{name} (p {_p(lead.p, equals=True)})" for name, lead in leads if lead is not None and lead.p >= LEVEL]
    if not unclear:
        return f"{best} leads; its lead over {_listed(clear)} is more than noise."
    if not clear:
        return f"{best} leads, but its lead over {_listed(unclear)} may be noise."
    return f"{best} leads; its lead over {_listed(clear)} is more than noise, over {_listed(unclear)} it may be noise."


def _accuracy(comparison: "Comparison", name: str) -> str:
    std = comparison.std(name)
    return f"{100 * comparison.mean(name):.1f}" + ("" if math.isnan(std) else f" ± {100 * std:.1f}")


def _p(value: float, *, equals: bool = False) -> str:
    """A p-value as statisticians write it: .03, < .001."""
    if math.isnan(value):
        return "–"
    if value < 0.001:
        return "< .001"
    text = f"{value:.2f}" if value >= 0.01 else f"{value:.3f}"
    text = text.removeprefix("0") if value < 0.995 else "1"
    return f"= {text}" if equals else text


def _listed(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
