"""``gcnsl train``."""

import shlex
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gcnsl.checks import LARGEST
from gcnsl.cli import shared_options as shared
from gcnsl.cli.app import app
from gcnsl.cli.assignments import read_options, with_class_weight
from gcnsl.cli.console import busy, epochs_shown, out, percent, print_facts, print_json, say
from gcnsl.cli.graph_source import GraphSource, say_unused, takes_graph
from gcnsl.cli.model_saving import save_model
from gcnsl.cli.page_writing import write_page
from gcnsl.cli.quality_tables import metric_facts, print_classes, remark_on_imbalance
from gcnsl.errors import InputError, Interrupted

if TYPE_CHECKING:
    from gcnsl.estimator import NodeClassifier
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
    context: typer.Context,
    source: GraphSource,
    method: shared.MethodOption = "gcn-sl",
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
        float | None, typer.Option(help="End training after so many minutes, with the best epoch until then.")
    ] = None,
    checkpoint_every: Annotated[
        int | None,
        typer.Option(
            min=1, help="Save the run beside the model every so many epochs: if it is killed, it continues from there."
        ),
    ] = None,
    plot: shared.PlotOption = None,
    page: shared.PageOption = None,
    root: shared.RootOption = None,
    as_json: shared.JsonOption = False,
    quiet: shared.QuietOption = False,
) -> None:
    """Train a method on a graph's labelled nodes, test it on nodes that are held back, and save it.

    Hyper-parameters are those of --set, then of --settings, then those published for a graph of the literature, then
    the method's defaults. Ctrl-C ends training with the best model so far; the same command continues it. All metrics
    on the test nodes are printed, and each class; --plot draws which classes are taken for which, and whether
    probabilities can be believed. --report writes a page with all of this, the mistakes and the reasons for them.

    Example: [bold]gcnsl train debian --method h2gcn-2 -o model[/]

    Example: [bold]gcnsl train --nodes nodes.csv --edges edges.csv -o model --metric roc-auc --class-weight balanced[/]
    """
    chosen = with_class_weight(read_options(options), class_weight)
    if output is None and checkpoint_every is not None:
        raise InputError("--checkpoint-every needs a place: the file lies beside the model, so give -o too")
    checkpoint = output and output.with_name(f"{output.name}.checkpoint")
    with busy("Reading the graph", quiet=quiet):
        from gcnsl.estimator import NodeClassifier
        from gcnsl.evaluation.training_report import report_on
        from gcnsl.files import reserved
        from gcnsl.graph import split_count, split_masks
        from gcnsl.methods import resolve
        from gcnsl.storage import check_place

        if output is not None:
            check_place(output)
            context.with_resource(reserved(output))
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
        checkpoint_every=checkpoint_every or LARGEST,  # Ctrl-C writes one anyway
    )
    try:
        with epochs_shown(most=resolved.training.epochs, minutes=minutes, quiet=quiet) as show:
            classifier.set_params(on_epoch=show)
            classifier.fit_graph(data, run=run % split_count(data), all_labels=all_labels, root=root)
    except Interrupted as interruption:
        with busy("Saving the best model so far", quiet=quiet):
            told = _save_so_far(classifier, interruption, output, spared=spared)
        raise Interrupted(told) from None
    if output is not None:
        save_model(classifier, output)
    report = report_on(classifier, data, run=run % split_count(data))
    if plot is not None and report.test is not None:
        from gcnsl.evaluation.quality_picture import draw_quality

        draw_quality(report.test, plot, title=f"{report.method} on {report.graph}")
    if page is not None:
        test = split_masks(data, run % split_count(data), need=())["test"]
        write_page(classifier, page, data, nodes=test, quiet=quiet)
    if as_json:
        print_json(asdict(report) | {"saved": output and str(output), "page": page and str(page)})
        return
    _print_report(report, output, metric)
    if plot is not None and report.test is not None:
        say("Picture", plot, where=out)
    if page is not None:
        say("Page", page, where=out)
    if output is not None:
        _print_next(classifier, shlex.quote(str(output)))


def say_if_interrupted(classifier: "NodeClassifier") -> None:
    """Remind the user of a model that its training can be continued."""
    if classifier.history_.stopped == "interrupted":
        epochs = f"training was interrupted after epoch {len(classifier.history_)}"
        say("Note", f"{epochs}; this is the best model until then, and the same `gcnsl train` completes it", "yellow")


def _save_so_far(classifier: "NodeClassifier", interruption: Interrupted, output: Path | None, *, spared: bool) -> str:
    """Save the best model so far, unless an older one is to be spared; say so, and how to continue."""
    from gcnsl.training.interruption import Interruption

    when = str(interruption).partition(";")[0]
    if output is None:
        return f"{when}; nothing was saved: -o FOLDER saves the best model so far"
    saved = f"{output} is still the older model" if spared else "there is no model yet"
    if interruption.so_far is not None and not spared:
        say("Interrupted", "saving the best model so far", "yellow")
        with Interruption() as further:
            further.ignore_further()
            save_model(classifier, output)
        saved = f"{output} is the best model so far, of epoch {classifier.history_.best_epoch}"
    again = "This continues" if output.with_name(f"{output.name}.checkpoint").exists() else "This begins anew"
    return f"{when}; {saved}. {again}:\n  {shlex.join(['gcnsl', *sys.argv[1:]])}"


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


def _print_next(classifier: "NodeClassifier", model: str) -> None:
    """Name the commands that come next, ready to be copied."""
    from gcnsl.graph import UNLABELLED

    unknown = int((classifier.y_ == UNLABELLED).argmax())
    node = unknown if classifier.node_ids_ is None else classifier.node_ids_[unknown]
    commands = (f"predict {model} -o predictions.csv", f"explain {model} {shlex.quote(str(node))}")
    say("Next", "".join(f"\n  gcnsl {command}" for command in commands), "bold", where=out)
