"""``gcnsl train``."""

import shlex
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gcnsl.cli import shared_options as shared
from gcnsl.cli.after_training import print_next, save_so_far
from gcnsl.cli.app import app
from gcnsl.cli.assignments import read_options, with_class_weight
from gcnsl.cli.console import busy, epochs_shown, out, percent, print_facts, print_json, say
from gcnsl.cli.graph_source import GraphSource, say_unused, takes_graph
from gcnsl.cli.quality_tables import metric_facts, print_classes, remark_on_imbalance
from gcnsl.cli.train_auto import AutoRequest, train_best
from gcnsl.errors import InputError, Interrupted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gcnsl.evaluation.training_report import TrainingReport

WHY_ENDED = {
    "patience": "none was better for long enough",
    "epochs": "the last one allowed",
    "minutes": "the last one within --minutes",
    "complete": "there are no more",
}


@app.command()
@takes_graph
def train(
    source: GraphSource,
    method: Annotated[
        str,
        typer.Option(
            help="The method to use, which `gcnsl options` lists; auto tries many and keeps an ensemble of the best."
        ),
    ] = "auto",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Save the model in this folder; an older model is replaced.")
    ] = None,
    split: shared.SplitOption = "random",
    run: Annotated[
        int,
        typer.Option(
            min=0,
            help="Which of the splits to train on, counted from 0; after the last of them the first follows again. The "
            "number is added to the seed of the weights.",
        ),
    ] = 0,
    all_labels: Annotated[
        bool,
        typer.Option("--all-labels", help="Learn from test nodes too, and hold nothing back: the model for later use."),
    ] = False,
    metric: shared.MetricOption = None,
    class_weight: shared.ClassWeightOption = None,
    options: shared.SetOption = None,
    settings: shared.SettingsOption = None,
    seed: shared.SeedOption = 0,
    device: shared.DeviceOption = "auto",
    minutes: Annotated[
        float | None,
        typer.Option(
            help="End training after so many minutes, with the best until then. With auto, 1, 5 or 30 by --quality."
        ),
    ] = None,
    quality: Annotated[
        str | None,
        typer.Option(help="With auto, how much is tried: fast, good or best. \\[default: good]", show_default=False),
    ] = None,
    runs: Annotated[
        int, typer.Option(min=1, help="With auto, repeat everything on so many splits, to know its own spread.")
    ] = 1,
    single: Annotated[
        bool, typer.Option("--single", help="With auto, keep the best single model instead of an ensemble.")
    ] = False,
    distil: Annotated[
        str | None,
        typer.Option(help="With auto, keep one model of this method that has learned what the ensemble predicts."),
    ] = None,
    keep_validation: Annotated[
        bool,
        typer.Option("--keep-validation", help="With auto, choose by the validation nodes and never learn from them."),
    ] = False,
    checkpoint_every: Annotated[
        int | None,
        typer.Option(
            min=1, help="Save the run beside the model every so many epochs: if it is killed, it continues from there."
        ),
    ] = None,
    plot: shared.PlotOption = None,
    root: shared.RootOption = None,
    as_json: shared.JsonOption = False,
    quiet: shared.QuietOption = False,
) -> None:
    """Train the best model for a graph on its labelled nodes, test it on nodes that are held back, and save it.

    By default, many methods are tried for five minutes, and an ensemble of the best is kept; a leaderboard shows all of
    them. With --method, only this one is trained.

    Hyper-parameters are those of --set, then of --settings, then those published for a graph of the literature, then
    the method's defaults. Ctrl-C ends training with the best model so far; the same command continues it. All metrics
    on the test nodes are printed, and each class; --plot draws which classes are taken for which, and whether
    probabilities can be believed.

    Example: [bold]gcnsl train debian --minutes 2 -o model[/]

    Example: [bold]gcnsl train debian --method h2gcn-2 -o model[/]

    Example: [bold]gcnsl train --nodes nodes.csv --edges edges.csv -o model --metric roc-auc --class-weight balanced[/]
    """
    chosen = with_class_weight(read_options(options), class_weight)
    for_auto = {"quality": quality, "single": single, "distil": distil, "keep_validation": keep_validation}
    if method == "auto":
        _refuse(method, {"--set": options, "--settings": settings, "--checkpoint-every": checkpoint_every})
        given = for_auto | {"metric": metric, "class_weight": class_weight}
        train_best(
            source,
            AutoRequest(
                settings={name: value for name, value in given.items() if value},
                output=output,
                split=split,
                run=run,
                runs=runs,
                all_labels=all_labels,
                seed=seed,
                device=device,
                minutes=minutes,
                plot=plot,
                root=root,
                as_json=as_json,
                quiet=quiet,
            ),
        )
        return
    named = {f"--{name.replace('_', '-')}": value for name, value in for_auto.items()}
    _refuse(method, named | {"--runs": runs > 1})
    if output is None and checkpoint_every is not None:
        raise InputError("--checkpoint-every needs a place: the file lies beside the model, so give -o too")
    checkpoint = output and output.with_name(f"{output.name}.checkpoint")
    with busy("Reading the graph", quiet=quiet):
        from gcnsl.estimator import NodeClassifier
        from gcnsl.evaluation.training_report import report_on
        from gcnsl.graph import split_count
        from gcnsl.methods import resolve
        from gcnsl.storage import check_place

        if output is not None:
            check_place(output)
        resolved = resolve(method, benchmark=source.benchmark, settings=settings, options=chosen, metric=metric)
        data = source.read_labelled(split=split, seed=seed, runs=max(run + 1, 10), root=root)
    remark_on_imbalance(data, metric, quiet=quiet)
    say_unused(data, [resolved])
    continues = checkpoint is not None and checkpoint.exists()
    spared = output is not None and output.exists() and not continues
    if continues and not quiet:
        say("Continuing", f"from {checkpoint}", "cyan")
    classifier = NodeClassifier(
        resolved.name,
        **resolved.options(),
        random_state=seed + run,
        device=device,
        minutes=minutes,
        checkpoint=checkpoint,
        checkpoint_every=checkpoint_every or sys.maxsize,  # Ctrl-C writes one anyway
    )
    try:
        with epochs_shown(quiet=quiet) as show:
            classifier.set_params(on_epoch=show)
            classifier.fit_graph(data, run=run % split_count(data), all_labels=all_labels, root=root)
    except Interrupted as interruption:
        with busy("Saving the best model so far", quiet=quiet):
            told = save_so_far(classifier, interruption, output, spared=spared)
        raise Interrupted(told) from None
    if output is not None:
        classifier.save(output)
    report = report_on(classifier, data, run=run % split_count(data))
    if plot is not None and report.test is not None:
        from gcnsl.evaluation.quality_picture import draw_quality

        draw_quality(report.test, plot, title=f"{report.method} on {report.graph}")
    if as_json:
        print_json(asdict(report) | {"saved": None if output is None else str(output)})
        return
    _print_report(report, output, metric)
    if plot is not None and report.test is not None:
        say("Picture", plot, where=out)
    if output is not None:
        print_next(classifier, shlex.quote(str(output)))


def _refuse(method: str, options: "Mapping[str, object]") -> None:
    """Raise an error if an option was given that means nothing for the method."""
    for name, value in options.items():
        if value:
            whose = "one method: name it with --method" if method == "auto" else "auto: leave out --method"
            raise InputError(f"{name} is for {whose}, or leave out {name}")


def _print_report(report: "TrainingReport", output: Path | None, metric: str | None) -> None:
    facts = {"test accuracy": "–  [dim]no node was held back[/]"} if report.test is None else {}
    facts |= {} if report.test is None else metric_facts(report.test, metric)
    for part, title in {"val": "validation accuracy", "train": "training accuracy"}.items():
        facts[title] = f"{percent(report.accuracy[part])} [dim]of {report.nodes[part]:,} nodes[/]"
    facts["features"] = report.features
    facts["epochs"] = f"{report.epochs} [dim]({WHY_ENDED[report.stopped]})[/], the best is {report.best_epoch}"
    facts["time"] = f"{report.seconds:.1f} s [dim]on {report.device}[/]"
    for title, graph in {"given graph A": report.original, "learned graph A*": report.reconnected}.items():
        if graph is not None:
            agreement = "–" if graph.homophily is None else f"{graph.homophily:.2f}"
            remark = f" [yellow]({graph.doubt})[/]" if graph is report.reconnected and graph.doubt else ""
            facts[title] = f"{graph.edges:,} edges, homophily {agreement}{remark}"
    facts["saved in"] = "nowhere [dim](-o FOLDER saves it)[/]" if output is None else str(output)
    print_facts(f"{report.method} on {report.graph}", facts)
    if report.test is not None:
        print_classes(report.test)
