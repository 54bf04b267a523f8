"""``gcnsl compare``."""

from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gcnsl.cli import shared_options as shared
from gcnsl.cli.app import app
from gcnsl.cli.console import busy, in_shell, out, print_json, print_table, progress, say
from gcnsl.cli.graph_source import GraphSource, remark, suited_metric, takes_graph
from gcnsl.cli.shared_options import read_options, with_class_weight, workers
from gcnsl.errors import InputError

if TYPE_CHECKING:
    from gcnsl.evaluation import Comparison
    from gcnsl.methods import Method
    from gcnsl.runs.jobs import Job
    from gcnsl.training import Epoch

USUAL_MODELS = "mlp,gcn,h2gcn-2,gcn-sl-plus"
"""What is compared by default: without the graph, with it, made for disagreeing neighbours, and ours."""
USUAL_RUNS = 10


@app.command()
@takes_graph
def compare(
    source: GraphSource,
    models: Annotated[str, typer.Option(help="Methods of `gcnsl options`, separated by commas.")] = USUAL_MODELS,
    runs: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="How often to train each, with a split and a seed of its own; after the last split the first follows "
            f"again. \\[default: one for each given split, {USUAL_RUNS} if there is one or none]",
        ),
    ] = None,
    split: shared.SplitOption = "random",
    metric: shared.MetricOption = None,
    class_weight: shared.ClassWeightOption = None,
    options: shared.SetOption = None,
    settings: shared.SettingsOption = None,
    seed: shared.SeedOption = 0,
    device: shared.DeviceOption = "auto",
    cluster: shared.ClusterOption = None,
    plot: shared.PlotOption = None,
    root: shared.RootOption = None,
    as_json: shared.JsonOption = False,
    quiet: shared.QuietOption = False,
) -> None:
    """Train several methods on the same splits of a graph and say which suits it, and whether that is more than luck.

    The p-values are those of a paired t-test with Nadeau and Bengio's correction for training sets that overlap, and
    with Holm's for the number of methods. A method is "≈ best" if the interval of the difference lies within ±1 point.
    With a single given split, runs differ in the seeds of the weights, and say nothing about other splits. The method
    "majority" always guesses the most frequent class. A method that fails is left out, and the others are compared.

    A hyper-parameter is set for all models, or for one by --set MODEL.KEY=VALUE. After Ctrl-C the finished runs are
    shown. The last line is the command that trains the winner.

    Example: [bold]gcnsl compare debian --models mlp,gcn,gcn-sl --plot comparison.png[/]

    Example: [bold]gcnsl compare --nodes nodes.csv --edges edges.csv --folds 5 --metric macro-f1 --set epochs=200[/]
    """
    chosen = with_class_weight(read_options(options), class_weight)
    with busy("Reading the graph", quiet=quiet):
        names = [name.strip() for name in models.split(",") if name.strip()]
        if not names:
            raise InputError(f"--models {models!r} names none: separate some with commas, for example mlp,gcn-sl")
        methods = _resolve_all(names, source.benchmark, settings, chosen, metric)
        from gcnsl.evaluation.comparison import ComparisonInterrupted
        from gcnsl.evaluation.comparison import compare as compare_methods
        from gcnsl.graph import split_count

        data = source.read_labelled(split=split, seed=seed, runs=runs or USUAL_RUNS, root=root)
        runs = runs or (split_count(data) if split_count(data) > 1 else USUAL_RUNS)
    suited = suited_metric(data, metric, quiet=quiet)
    if suited != metric:
        methods = _resolve_all(names, source.benchmark, settings, chosen, suited)
    remark(data, methods.values())
    name, stopped = data.get("name") or "graph", None
    total, done, unit = runs * len(methods), 0, "epoch" if cluster is None else "run"

    def tell(method: str, run: int) -> None:
        nonlocal done
        done += 1
        bar.update(completed=done, text=f"{done}/{total}  {method}, run {run}")

    def show(job: "Job", epoch: "Epoch") -> None:
        text = f"{done + 1}/{total}  {job.name}, run {job.run}  {epoch.validation}"
        bar.update(completed=done + epoch.seconds / (epoch.seconds + epoch.seconds_left), text=text)

    how: dict[str, Any] = {"metric": suited or "accuracy", "seed": seed, "device": device, "root": root}
    try:
        with (
            progress("Comparing", total, unit=unit, quiet=quiet) as bar,
            workers(cluster, quiet=quiet, on_epoch=show) as executor,
        ):
            bar.update(completed=0, text=f"0/{total}")
            comparison = compare_methods(data, methods, runs=runs, executor=executor, on_run=tell, **how)
    except ComparisonInterrupted as interruption:
        comparison, stopped = interruption.finished, interruption
    named = {"--split": split if split != "random" else None, "--metric": metric, "--class-weight": class_weight}
    plain = named | {"--seed": str(seed) if seed else None, "--root": None if root is None else str(root)}
    command = comparison.winner and _training_command(comparison.winner, source, options or [], settings, plain)
    if comparison.winner and plot is not None:
        from gcnsl.evaluation.pictures import draw_comparison

        draw_comparison(comparison, plot, graph=name)
    if as_json:
        print_json({"graph": name, "complete": stopped is None} | comparison.to_dict() | {"next": command})
    elif comparison.winner:
        _print_comparison(comparison, name)
        if plot is not None:
            say("Picture", plot, where=out)
    for method, why in comparison.failures.items():
        say("Left out", f"{method}, {why}", "yellow")
    if command and not as_json:
        say("Train it", command, "bold", where=out)
    if stopped is not None:
        raise stopped


def _resolve_all(
    names: Iterable[str],
    benchmark: str | None,
    settings: Path | None,
    given: Mapping[str, Any],
    metric: str | None = None,
) -> "dict[str, Method]":
    """Methods by name, each with its hyper-parameters.

    Methods for which the settings file has nothing do without it, but it must have some for one of them. In ``given``,
    which is what ``--set`` says, ``key`` is for all methods and ``method.key`` for one; ``metric`` chooses epochs.
    """
    from gcnsl.methods import ALIASES, find_method, resolve
    from gcnsl.methods.resolver import read_settings

    names = [find_method(name).name for name in names]
    options: dict[str, dict[str, Any]] = {name: {} for name in names}
    for key, value in given.items():
        whose, dot, option = key.rpartition(".")
        name = ALIASES.get(whose, whose)
        if dot and name not in options:
            raise InputError(f"--set {key}: {whose!r} is not compared; the models are {', '.join(options)}")
        for one in [name] if dot else options:
            options[one][option] = value
    having = set(names) if settings is None else set(names) & read_settings(settings).keys()
    if not having:
        raise InputError(f"{settings} has settings for none of {', '.join(names)}: give another file, or leave it out")
    files = {name: settings if name in having else None for name in names}
    return {
        name: resolve(name, benchmark=benchmark, settings=files[name], options=options[name], metric=metric)
        for name in names
    }


def _training_command(
    best: str, source: GraphSource, options: list[str], settings: Path | None, plain: dict[str, str | None]
) -> str:
    """The command that trains the winner as it was trained here; ``plain`` are options that it takes as they are."""
    from gcnsl.methods import ALIASES
    from gcnsl.methods.resolver import read_settings

    parts = ["gcnsl", "train", *source.arguments, "--method", best]
    parts += [part for option, value in plain.items() if value is not None for part in (option, value)]
    for text in options:
        key, _, value = text.partition("=")
        whose, _, option = key.rpartition(".")
        parts += ["--set", f"{option}={value}"] if ALIASES.get(whose, whose) in ("", best) else []
    parts += ["--settings", str(settings)] if settings and best in read_settings(settings) else []
    return in_shell([*parts, "-o", "model"])


def _print_comparison(comparison: "Comparison", graph: str) -> None:
    from gcnsl.evaluation.comparison import MAJORITY, p_text
    from gcnsl.training import METRICS

    number = partial(METRICS[comparison.metric].text, percent_sign=False)
    counts = {len(comparison.values(name)) for name in comparison.ranking}
    complete = len(counts) == 1
    runs = f"{max(counts)} run{'s' if max(counts) > 1 else ''}" if complete else "the runs that are finished"
    remarks = {"equal": " [dim]≈ best[/]", "undecided": " [dim]undecided[/]", "clear": ""}
    rows, leads = [], comparison.leads
    for name in comparison.ranking:
        lead, done = leads.get(name), [] if name == MAJORITY else comparison.runs[name].values()
        row = (
            name if lead is None else name + remarks[lead.verdict],
            f"{number(comparison.mean(name))} ± {number(comparison.std(name))}".removesuffix(" ± –"),
            "" if lead is None else number(lead.mean),
            "" if lead is None else p_text(lead.p),
            f"{fmean(run.epochs for run in done):.0f}" if done else "",
            f"{sum(run.seconds for run in done):.1f} s" if done else "",
            *([] if complete else [str(len(comparison.values(name)))]),
        )
        rows.append([f"[bold]{cell}[/]" for cell in row] if lead is None else row)
    score = f"test {comparison.metric}"
    headings = ("method", score, "best leads by", "p", "epochs", "time", *([] if complete else ["runs"]))
    print_table(headings, rows, title=f"{graph}, {runs}", right=headings[1:])
    if comparison.test_share == 0 and max(counts) > 1:
        out.print("These are differences between seeds on one split; they say nothing about other splits.")
    out.print(comparison.verdict(), highlight=False, soft_wrap=True)
