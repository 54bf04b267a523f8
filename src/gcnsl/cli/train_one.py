"""``gcnsl train --method NAME``: one method, its metrics on the test nodes, and its learned graph."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gcnsl.cli.after_training import (
    finishing,
    print_result,
    save_finished,
    saved_if_interrupted,
    write_picture_and_page,
)
from gcnsl.cli.console import busy, epochs_shown, percent, print_json
from gcnsl.cli.graph_source import GraphSource, say_unused
from gcnsl.cli.quality_tables import remark_on_imbalance
from gcnsl.cli.train_request import TrainRequest

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
    with busy("Reading the graph", quiet=quiet):
        from gcnsl.methods import resolve

        resolved = resolve(
            asked.method,
            benchmark=source.benchmark,
            settings=asked.settings,
            options=asked.options,
            metric=asked.metric,
        )
        from gcnsl.checks import LARGEST
        from gcnsl.estimator import NodeClassifier
        from gcnsl.evaluation.training_report import report_on
        from gcnsl.graph import split_count

        data = source.read_labelled(split=asked.split, seed=asked.seed, runs=max(asked.run + 1, 10), root=asked.root)
        run = asked.run % split_count(data)
    remark_on_imbalance(data, asked.metric, quiet=quiet)
    say_unused(data, [resolved])
    classifier = NodeClassifier(
        resolved.name,
        **resolved.options(),
        random_state=asked.seed + asked.run,
        device=asked.device,
        minutes=asked.minutes,
        checkpoint=asked.checkpoint(),
        checkpoint_every=asked.checkpoint_every or LARGEST,  # Ctrl-C writes one anyway
    )
    shown = epochs_shown(most=resolved.training.epochs, minutes=asked.minutes, quiet=quiet)
    with saved_if_interrupted(classifier, asked), shown as show:
        classifier.set_params(on_epoch=show)
        classifier.fit_graph(data, run=run, all_labels=asked.all_labels, root=asked.root)
    if output is not None:
        save_finished(classifier, output)
    with finishing(output):
        report = report_on(classifier, data, run=run)
        write_picture_and_page(classifier, data, report, asked, title=f"{report.method} on {report.graph}")
        if asked.as_json:
            print_json(asdict(report) | {"saved": output and str(output), "page": asked.page and str(asked.page)})
            return
        print_result(classifier, report, asked, _facts(report), asked.metric)


def _facts(report: "TrainingReport") -> dict[str, str]:
    """What is told about the training of one method, beside the metrics on the test nodes."""
    facts = {}
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
    return facts
