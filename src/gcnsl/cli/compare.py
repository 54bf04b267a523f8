"""``gcnsl compare``."""

import math
import shlex
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from gcnsl.cli.app import app, say
from gcnsl.cli.assignments import read_options, resolve_all
from gcnsl.cli.console import busy, out, print_json, print_path, runs_shown
from gcnsl.cli.graph_source import GraphSource, takes_graph
from gcnsl.cli.shared_options import (
    DeviceOption,
    JsonOption,
    PlotOption,
    QuietOption,
    RootOption,
    SettingsOption,
    SplitOption,
    TrainingSeedOption,
)
from gcnsl.errors import InputError

if TYPE_CHECKING:
    from gcnsl.evaluation import Comparison

USUAL_MODELS = ("mlp", "gcn", "h2gcn-2", "gcn-sl-cc")
"""What is compared by default: without the graph, with it, made for disagreeing neighbours, and ours."""
USUAL_RUNS = 10


@app.command()
@takes_graph
def compare(
    source: GraphSource,
    models: Annotated[
        str,
        typer.Option(help="The methods to compare, separated by commas; `gcnsl options` lists them."),
    ] = ",".join(USUAL_MODELS),
    runs: Annotated[
        int | None,
        typer.Option(
            min=1, help=f"On how many splits to compare them. \\[default: {USUAL_RUNS}, or as many as the graph has]"
        ),
    ] = None,
    split: SplitOption = "random",
    options: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="[MODEL.]KEY=VALUE", help="Set a hyper-parameter of one model or of all; may be repeated."
        ),
    ] = None,
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
    After Ctrl-C the finished runs are shown. The last line is the command that trains the winner.

    Example: [bold]gcnsl compare debian --models mlp,gcn,gcn-sl --plot comparison.png[/]

    Example: [bold]gcnsl compare --nodes nodes.csv --edges edges.csv --set epochs=200 --set gcn-sl.epsilon=0.8[/]
    """
    chosen = read_options(options)
    with busy("Reading the graph", quiet=quiet):
        from gcnsl.evaluation.comparison import ComparisonInterrupted
        from gcnsl.evaluation.comparison import compare as compare_methods
        from gcnsl.graph import split_count
        from gcnsl.pictures import check_picture

        if plot is not None:
            check_picture(plot)
        methods = resolve_all(_names(models), source.benchmark, settings, chosen)
        data = source.read_labelled(split=split, seed=seed, runs=runs or USUAL_RUNS, root=root)
        runs = runs or min(USUAL_RUNS, split_count(data))
    name, stopped = data.get("name") or "graph", None
    try:
        with runs_shown(runs * len(methods), quiet=quiet) as (begin, show):
            comparison = compare_methods(
                data, methods, runs=runs, seed=seed, device=device, root=root, on_run=begin, on_epoch=show
            )
    except ComparisonInterrupted as interruption:
        comparison, stopped = interruption.finished, interruption
    if comparison.accuracy and plot is not None:
        from gcnsl.evaluation.comparison_picture import draw_comparison

        draw_comparison(comparison, plot, graph=name)
    command = _training_command(comparison, source, split, options or [], settings, seed)
    if as_json:
        print_json({"graph": name, "complete": stopped is None} | _as_json(comparison) | {"next": command})
    elif comparison.accuracy:
        _print_comparison(comparison, name)
        if plot is not None:
            print_path("Picture", plot)
    for method, why in comparison.failures.items():
        say("Left out", f"{method}, {why}", "yellow")
    if command and not as_json:
        out.print("Train it:", style="bold", end=" ")
        out.print(command, highlight=False, markup=False, soft_wrap=True)
    if stopped is not None:
        raise stopped


def _names(models: str) -> list[str]:
    names = [name.strip() for name in models.split(",") if name.strip()]
    if not names:
        raise InputError(f"--models {models!r} names none: separate some with commas, for example mlp,gcn-sl")
    return names


def _training_command(
    comparison: "Comparison", source: GraphSource, split: str, options: list[str], settings: Path | None, seed: int
) -> str | None:
    """The command that trains the winner as it was trained here; None if nothing is finished."""
    if not comparison.accuracy:
        return None
    from gcnsl.methods import ALIASES

    best = comparison.ranking[0]
    parts = ["gcnsl", "train", *shlex.split(source.options), "--method", best]
    parts += [] if split == "random" else ["--split", split]
    for text in options:
        whose, dot, rest = text.partition("=")[0].rpartition(".")
        if not dot or ALIASES.get(whose, whose) == best:
            parts += ["--set", f"{rest}={text.partition('=')[2]}"]
    if settings is not None:
        from gcnsl.methods.resolver import read_settings

        parts += ["--settings", str(settings)] if best in read_settings(settings) else []
    parts += [] if seed == 0 else ["--seed", str(seed)]
    return shlex.join([*parts, "-o", "model"])


def _as_json(comparison: "Comparison") -> dict[str, Any]:
    from gcnsl.evaluation.statistics import LEVEL

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
        "verdict": comparison.verdict() if comparison.accuracy else None,
        "failures": comparison.failures,
    }


def _print_comparison(comparison: "Comparison", graph: str) -> None:
    from gcnsl.evaluation.comparison import p_text

    counts = {len(accuracy) for accuracy in comparison.accuracy.values()}
    runs = f"{max(counts)} run{'s' if max(counts) > 1 else ''}" if len(counts) == 1 else "the runs that are finished"
    table = Table(title=f"{graph}, {runs}", title_style="bold", title_justify="left")
    table.add_column("method")
    for heading in ("test accuracy", "best leads by", "p", "epochs", "time", *(["runs"] if len(counts) > 1 else [])):
        table.add_column(heading, justify="right")
    for name in comparison.ranking:
        lead = comparison.against_best(name)
        table.add_row(
            f"{name} [dim]≈ best[/]" if comparison.is_like_best(name) else name,
            _accuracy(comparison, name),
            "" if lead is None else f"{100 * lead.mean:.1f}",
            "" if lead is None else p_text(lead.p),
            f"{fmean(comparison.epochs[name]):.0f}",
            f"{comparison.seconds[name]:.1f} s",
            *([str(len(comparison.accuracy[name]))] if len(counts) > 1 else []),
            style="bold" if lead is None else "",
        )
    out.print(table)
    if len(comparison.accuracy) > 1:
        out.print(comparison.verdict(), highlight=False, soft_wrap=True)


def _accuracy(comparison: "Comparison", name: str) -> str:
    std = comparison.std(name)
    return f"{100 * comparison.mean(name):.1f}" + ("" if math.isnan(std) else f" ± {100 * std:.1f}")
