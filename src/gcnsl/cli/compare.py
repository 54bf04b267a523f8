"""``gcnsl compare``."""

import shlex
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Annotated

import typer

from gcnsl.cli import shared_options as shared
from gcnsl.cli.app import app
from gcnsl.cli.assignments import read_options, resolve_all
from gcnsl.cli.console import busy, out, print_json, print_table, runs_shown, say
from gcnsl.cli.graph_source import GraphSource, say_unused, takes_graph
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
        str, typer.Option(help="The methods to compare, separated by commas; `gcnsl options` lists them.")
    ] = ",".join(USUAL_MODELS),
    runs: Annotated[
        int | None,
        typer.Option(
            min=1, help=f"On how many splits to compare them. \\[default: {USUAL_RUNS}, or as many as the graph has]"
        ),
    ] = None,
    split: shared.SplitOption = "random",
    options: shared.SetOption = None,
    settings: shared.SettingsOption = None,
    seed: shared.SeedOption = 0,
    device: shared.DeviceOption = "auto",
    plot: shared.PlotOption = None,
    root: shared.RootOption = None,
    as_json: shared.JsonOption = False,
    quiet: shared.QuietOption = False,
) -> None:
    """Train several methods on the same splits of a graph and say which suits it, and whether that is more than luck.

    The p-values are those of a paired t-test with Nadeau and Bengio's correction for training sets that overlap.
    A hyper-parameter is set for all models, or for one by --set MODEL.KEY=VALUE. After Ctrl-C the finished runs are
    shown. The last line is the command that trains the winner.

    Example: [bold]gcnsl compare debian --models mlp,gcn,gcn-sl --plot comparison.png[/]

    Example: [bold]gcnsl compare --nodes nodes.csv --edges edges.csv --set epochs=200 --set gcn-sl.epsilon=0.8[/]
    """
    chosen = read_options(options)
    with busy("Reading the graph", quiet=quiet):
        from gcnsl.evaluation.comparison import ComparisonInterrupted
        from gcnsl.evaluation.comparison import compare as compare_methods
        from gcnsl.graph import split_count

        names = [name.strip() for name in models.split(",") if name.strip()]
        if not names:
            raise InputError(f"--models {models!r} names none: separate some with commas, for example mlp,gcn-sl")
        methods = resolve_all(names, source.benchmark, settings, chosen)
        data = source.read_labelled(split=split, seed=seed, runs=runs or USUAL_RUNS, root=root)
        runs = runs or min(USUAL_RUNS, split_count(data))
    say_unused(data, methods.values())
    name, stopped = data.get("name") or "graph", None
    try:
        with runs_shown(runs * len(methods), quiet=quiet) as (begin, show):
            comparison = compare_methods(
                data, methods, runs=runs, seed=seed, device=device, root=root, on_run=begin, on_epoch=show
            )
    except ComparisonInterrupted as interruption:
        comparison, stopped = interruption.finished, interruption
    command = _training_command(comparison, source, split, options or [], settings, seed)
    if comparison.accuracy and plot is not None:
        from gcnsl.evaluation.comparison_picture import draw_comparison

        draw_comparison(comparison, plot, graph=name)
    if as_json:
        print_json({"graph": name, "complete": stopped is None} | comparison.to_dict() | {"next": command})
    elif comparison.accuracy:
        _print_comparison(comparison, name)
        if plot is not None:
            say("Picture", plot, where=out)
    for method, why in comparison.failures.items():
        say("Left out", f"{method}, {why}", "yellow")
    if command and not as_json:
        say("Train it", command, "bold", where=out)
    if stopped is not None:
        raise stopped


def _training_command(
    comparison: "Comparison", source: GraphSource, split: str, options: list[str], settings: Path | None, seed: int
) -> str | None:
    """The command that trains the winner as it was trained here; None if nothing is finished."""
    if not comparison.accuracy:
        return None
    from gcnsl.methods import ALIASES
    from gcnsl.methods.resolver import read_settings

    best = comparison.ranking[0]
    parts = ["gcnsl", "train", *source.arguments, "--method", best]
    parts += [] if split == "random" else ["--split", split]
    for text in options:
        key, _, value = text.partition("=")
        whose, _, option = key.rpartition(".")
        parts += ["--set", f"{option}={value}"] if ALIASES.get(whose, whose) in ("", best) else []
    parts += ["--settings", str(settings)] if settings and best in read_settings(settings) else []
    parts += [] if seed == 0 else ["--seed", str(seed)]
    return shlex.join([*parts, "-o", "model"])


def _print_comparison(comparison: "Comparison", graph: str) -> None:
    from gcnsl.evaluation.comparison import p_text
    from gcnsl.evaluation.statistics import LEVEL

    counts = {len(accuracy) for accuracy in comparison.accuracy.values()}
    complete = len(counts) == 1
    runs = f"{max(counts)} run{'s' if max(counts) > 1 else ''}" if complete else "the runs that are finished"
    rows = []
    for name in comparison.ranking:
        lead = comparison.against_best(name)
        row = (
            name if lead is None or lead.p < LEVEL else f"{name} [dim]≈ best[/]",
            f"{100 * comparison.mean(name):.1f} ± {100 * comparison.std(name):.1f}".removesuffix(" ± nan"),
            "" if lead is None else f"{100 * lead.mean:.1f}",
            "" if lead is None else p_text(lead.p),
            f"{fmean(comparison.epochs[name]):.0f}",
            f"{comparison.seconds[name]:.1f} s",
            *([] if complete else [str(len(comparison.accuracy[name]))]),
        )
        rows.append([f"[bold]{cell}[/]" for cell in row] if lead is None else row)
    headings = ("method", "test accuracy", "best leads by", "p", "epochs", "time", *([] if complete else ["runs"]))
    print_table(headings, rows, title=f"{graph}, {runs}", right=headings[1:])
    if len(comparison.accuracy) > 1:
        out.print(comparison.verdict(), highlight=False, soft_wrap=True)
