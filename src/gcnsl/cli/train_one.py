"""``gcnsl train --method NAME``: one method, its metrics on the test nodes, and its learned graph."""

import shlex
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gcnsl.cli.after_training import print_next, save_so_far
from gcnsl.cli.console import busy, epochs_shown, out, percent, print_facts, print_json, say
from gcnsl.cli.graph_source import GraphSource, say_unused
from gcnsl.cli.model_saving import save_model
from gcnsl.cli.page_writing import write_page
from gcnsl.cli.quality_tables import metric_facts, print_classes, remark_on_imbalance
from gcnsl.cli.train_request import TrainRequest
from gcnsl.errors import Interrupted

if TYPE_CHECKING:
    from gcnsl.evaluation.training_report import TrainingReport

WHY_ENDED = {
    "patience": "none was better for long enough",
    "epochs": "the last one allowed",
    "minutes": "the last one within --minutes",
    "complete": "there are no more",
}


@dataclass(frozen=True, kw_only=True)
class OneRequest(TrainRequest):
    """What was asked for; ``options`` are hyper-parameters, ``settings`` a file of them."""

    method: str
    options: dict[str, Any]
    settings: Path | None
    metric: str | None
    checkpoint_every: int | None


def train_one(source: GraphSource, asked: OneRequest) -> None:
    """Train a method on one split, save it, and print what came of it."""
    output, quiet = asked.output, asked.quiet
    checkpoint = output and output.with_name(f"{output.name}.checkpoint")
    with busy("Reading the graph", quiet=quiet):
        from gcnsl.checks import LARGEST
        from gcnsl.estimator import NodeClassifier
        from gcnsl.evaluation.training_report import report_on
        from gcnsl.graph import split_count, split_masks
        from gcnsl.methods import resolve

        resolved = resolve(
            asked.method,
            benchmark=source.benchmark,
            settings=asked.settings,
            options=asked.options,
            metric=asked.metric,
        )
        data = source.read_labelled(split=asked.split, seed=asked.seed, runs=max(asked.run + 1, 10), root=asked.root)
        run = asked.run % split_count(data)
    remark_on_imbalance(data, asked.metric, quiet=quiet)
    say_unused(data, [resolved])
    continues = checkpoint is not None and checkpoint.exists()
    spared = output is not None and output.exists() and not continues
    if continues and not quiet:
        say("Continuing", f"from {checkpoint}", "cyan")
    classifier = NodeClassifier(
        resolved.name,
        **resolved.options(),
        random_state=asked.seed + asked.run,
        device=asked.device,
        minutes=asked.minutes,
        checkpoint=checkpoint,
        checkpoint_every=asked.checkpoint_every or LARGEST,  # Ctrl-C writes one anyway
    )
    try:
        with epochs_shown(most=resolved.training.epochs, minutes=asked.minutes, quiet=quiet) as show:
            classifier.set_params(on_epoch=show)
            classifier.fit_graph(data, run=run, all_labels=asked.all_labels, root=asked.root)
    except Interrupted as interruption:
        with busy("Saving the best model so far", quiet=quiet):
            told = save_so_far(classifier, interruption, output, spared=spared)
        raise Interrupted(told) from None
    if output is not None:
        save_model(classifier, output)
    report = report_on(classifier, data, run=run)
    if asked.plot is not None and report.test is not None:
        from gcnsl.evaluation.quality_picture import draw_quality

        draw_quality(report.test, asked.plot, title=f"{report.method} on {report.graph}")
    if asked.page is not None:
        test = split_masks(data, run, need=())["test"]
        write_page(classifier, asked.page, data, nodes=test, quiet=quiet)
    if asked.as_json:
        print_json(asdict(report) | {"saved": output and str(output), "page": asked.page and str(asked.page)})
        return
    _print_report(report, output, asked.metric)
    if asked.plot is not None and report.test is not None:
        say("Picture", asked.plot, where=out)
    if asked.page is not None:
        say("Page", asked.page, where=out)
    if output is not None:
        print_next(classifier, shlex.quote(str(output)))


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
