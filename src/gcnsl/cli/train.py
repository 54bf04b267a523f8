"""``gcnsl train``: the best model for a graph, or one method."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gcnsl.cli import shared_options as shared
from gcnsl.cli.app import app
from gcnsl.cli.console import busy, epochs_shown, percent, print_json
from gcnsl.cli.graph_source import GraphSource, say_unused, takes_graph
from gcnsl.cli.measured_output import print_result, remark_on_imbalance, train_as_json, write_picture_and_page
from gcnsl.cli.model_saving import TrainRequest, finishing, reserve, save_finished, saved_if_interrupted
from gcnsl.cli.shared_options import read_options, with_class_weight
from gcnsl.cli.train_auto import AutoRequest, train_best
from gcnsl.cli.worker_options import ClusterOption
from gcnsl.errors import InputError

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from gcnsl.estimator import NodeClassifier
    from gcnsl.evaluation import Measured

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
    cluster: ClusterOption = None,
    plot: shared.PlotOption = None,
    page: shared.PageOption = None,
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
    probabilities can be believed. --report writes a page with all of this, the mistakes and the reasons for them.

    Example: [bold]gcnsl train debian --minutes 2 -o model[/]

    Example: [bold]gcnsl train debian --method h2gcn-2 -o model[/]

    Example: [bold]gcnsl train --nodes nodes.csv --edges edges.csv -o model --metric average-precision[/]

    Example: [bold]gcnsl train squirrel -o model --cluster tcp://10.0.0.1:8786[/]
    """
    request: dict[str, Any] = {
        "output": output,
        "resumable": output is not None and reserve(context, output),
        "split": split,
        "run": run,
        "all_labels": all_labels,
        "seed": seed,
        "device": device,
        "minutes": minutes,
        "plot": plot,
        "page": page,
        "root": root,
        "as_json": as_json,
        "quiet": quiet,
    }
    for_auto = {"quality": quality, "single": single, "distil": distil, "keep_validation": keep_validation}
    if method == "auto":
        _refuse(method, {"--set": options, "--settings": settings, "--checkpoint-every": checkpoint_every})
        given = for_auto | {"metric": metric, "class_weight": class_weight}
        chosen = {name: value for name, value in given.items() if value}
        train_best(source, AutoRequest(**request, runs=runs, settings=chosen, cluster=cluster))
        return
    named = {f"--{name.replace('_', '-')}": value for name, value in for_auto.items()}
    _refuse(method, named | {"--runs": runs > 1, "--cluster": cluster})
    if output is None and checkpoint_every is not None:
        raise InputError("--checkpoint-every needs a place: the file lies beside the model, so give -o too")
    chosen = with_class_weight(read_options(options), class_weight)
    _train_one(source, TrainRequest(**request), method, chosen, settings, metric, checkpoint_every)


def _refuse(method: str, options: Mapping[str, object]) -> None:
    """Raise an error if an option was given that means nothing for the method."""
    for name, value in options.items():
        if value:
            whose = "one method: name it with --method" if method == "auto" else "auto: leave out --method"
            raise InputError(f"{name} is for {whose}, or leave out {name}")


def _train_one(
    source: GraphSource,
    asked: TrainRequest,
    method: str,
    options: dict[str, Any],
    settings: Path | None,
    metric: str | None,
    checkpoint_every: int | None,
) -> None:
    """Train a method on one split, save it, and print what came of it."""
    with busy("Reading the graph", quiet=asked.quiet):
        from gcnsl.methods import resolve

        resolved = resolve(method, benchmark=source.benchmark, settings=settings, options=options, metric=metric)
        from gcnsl.checks import LARGEST
        from gcnsl.estimator import NodeClassifier
        from gcnsl.evaluation import measure_split
        from gcnsl.graph import split_count

        data = source.read_labelled(split=asked.split, seed=asked.seed, runs=asked.run + 1, root=asked.root)
        run = asked.run % split_count(data)
    remark_on_imbalance(data, metric, quiet=asked.quiet)
    say_unused(data, [resolved])
    classifier = NodeClassifier(
        resolved.name,
        **resolved.options(),
        random_state=asked.seed + asked.run,
        device=asked.device,
        minutes=asked.minutes,
        checkpoint=asked.checkpoint(),
        checkpoint_every=checkpoint_every or LARGEST,  # Ctrl-C writes one anyway
    )
    shown = epochs_shown(most=resolved.training.epochs, minutes=asked.minutes, quiet=asked.quiet)
    with saved_if_interrupted(classifier, asked), shown as classifier.on_epoch:
        classifier.fit_graph(data, run=run, all_labels=asked.all_labels, root=asked.root)
    if asked.output is not None:
        save_finished(classifier, asked.output)
    with finishing(asked.output):
        measured = measure_split(classifier, data, run)
        write_picture_and_page(classifier, data, measured, asked)
        if asked.as_json:
            print_json(train_as_json(classifier, data, measured, run, asked))
            return
        print_result(classifier, data, measured, asked, _facts(classifier, data, measured), metric)


def _facts(classifier: "NodeClassifier", data: "Data", measured: "Measured") -> dict[str, str]:
    """What is told about the training of one method, beside the metrics on the test nodes."""
    from gcnsl.evaluation.measured import graph_facts

    prepared, history, facts = classifier.fitted_.prepared, classifier.history_, {}
    for part, title in {"val": "validation accuracy", "train": "training accuracy"}.items():
        share = measured.learned[part]
        facts[title] = f"{percent(share.right)} [dim]of {share.nodes:,} nodes[/]"
    facts["features"] = prepared.features.in_words(prepared.graph)
    why = WHY_ENDED[history.stopped]
    facts["epochs"] = f"{len(history)} [dim]({why})[/], the best is {history.best_epoch}"
    facts["time"] = f"{history.seconds:.1f} s [dim]on {prepared.device}[/]"
    given, learned = graph_facts(classifier, data)
    for title, graph in {"given graph A": given, "learned graph A*": learned}.items():
        if graph is not None:
            agreement = "–" if graph.homophily is None else f"{graph.homophily:.2f}"
            remark = f" [yellow]({graph.doubt})[/]" if graph is learned and graph.doubt else ""
            facts[title] = f"{graph.edges:,} edges, homophily {agreement}{remark}"
    return facts
