"""``gcnsl train`` without a method: the best ensemble, a leaderboard, and how much both depend on the split."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

from rich.markup import escape

from gcnsl.cli.after_training import print_next, save_so_far
from gcnsl.cli.console import busy, duration, out, print_facts, print_json, print_table, progress, say
from gcnsl.cli.graph_source import GraphSource
from gcnsl.cli.model_saving import save_model
from gcnsl.cli.page_writing import write_page
from gcnsl.cli.quality_tables import metric_facts, print_classes, remark_on_imbalance
from gcnsl.cli.train_request import TrainRequest
from gcnsl.cli.worker_options import workers
from gcnsl.errors import Interrupted

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd
    from torch_geometric.data import Data

    from gcnsl.estimator import NodeClassifier
    from gcnsl.evaluation.training_report import TrainingReport
    from gcnsl.selection import Progress
    from gcnsl.workers.executor import Executor

SHOWN = 15


@dataclass(frozen=True, kw_only=True)
class AutoRequest(TrainRequest):
    """What was asked for; ``settings`` are those of the selection, ``runs`` the number of splits."""

    runs: int
    settings: dict[str, Any]
    cluster: str | None = None

    def journal(self, number: int) -> Path | None:
        """Where the finished models of a run are kept until the model is saved."""
        return self.output and self.output.with_name(f"{self.output.name}.checkpoint{number or ''}")


def train_best(source: GraphSource, asked: AutoRequest) -> None:
    """Find the best model on each split, save that of the first, and print what came of it."""
    with busy("Reading the graph", quiet=asked.quiet):
        from gcnsl.estimator.node_classifier import NodeClassifier
        from gcnsl.graph import split_count, split_masks
        from gcnsl.selection import AutoSettings

        settings = AutoSettings().changed(**asked.settings)
        runs = max(asked.run + asked.runs, 10)
        data = source.read_labelled(split=asked.split, seed=asked.seed, runs=runs, root=asked.root)
    remark_on_imbalance(data, asked.settings.get("metric"), quiet=asked.quiet)
    reports = []
    with workers(asked.cluster, quiet=asked.quiet) as executor:
        for number in range(asked.runs):
            classifier = NodeClassifier(
                "auto",
                **asked.settings,
                random_state=asked.seed + asked.run + number,
                device=asked.device,
                minutes=asked.minutes,
                checkpoint=asked.journal(number),
            )
            reports.append(_train(classifier, data, asked, number, executor))
            if number == 0:
                first = classifier
    for number in range(asked.runs):
        _forget(asked.journal(number))
    if asked.plot is not None and reports[0].test is not None:
        from gcnsl.evaluation.quality_picture import draw_quality

        draw_quality(reports[0].test, asked.plot, title=f"the best ensemble on {reports[0].graph}")
    if asked.page is not None:
        test = split_masks(data, asked.run % split_count(data), need=())["test"]
        write_page(first, asked.page, data, nodes=test, quiet=asked.quiet)
    if asked.as_json:
        _print_json(first, reports, asked)
        return
    _print_leaderboard(first.leaderboard_)
    _print_report(first, reports, asked, settings.metric)


def _train(
    classifier: NodeClassifier, data: Data, asked: AutoRequest, number: int, executor: Executor | None
) -> TrainingReport:
    """Find the best model on one split; that of the first is saved at once."""
    from gcnsl.evaluation.training_report import report_on
    from gcnsl.graph import split_count

    run, output, journal = (asked.run + number) % split_count(data), asked.output, asked.journal(number)
    continues = journal is not None and journal.exists()
    spared = output is not None and output.exists() and (not continues or number > 0)
    if continues and not asked.quiet:
        say("Continuing", f"from {journal}", "cyan")
    try:
        with _progress_shown(quiet=asked.quiet) as show:
            classifier.set_params(on_epoch=show)
            classifier.fit_graph(data, run=run, all_labels=asked.all_labels, root=asked.root, executor=executor)
    except Interrupted as interruption:
        with busy("Saving the best model so far", quiet=asked.quiet):
            told = save_so_far(classifier, interruption, output, spared=spared)
        raise Interrupted(told) from None
    if output is not None and number == 0:
        classifier.checkpoint = None  # the journals are kept until the last run is finished
        save_model(classifier, output)
    return report_on(classifier, data, run=run)


def _forget(journal: Path | None) -> None:
    from gcnsl.selection.journal import remove_journal

    if journal is not None:
        remove_journal(journal)


@contextmanager
def _progress_shown(*, quiet: bool) -> Iterator[Callable[[Progress], None]]:
    """A bar over the time budget: what is being tried, and the best so far."""
    from gcnsl.training import METRICS

    with progress("Searching", unit="model", quiet=quiet) as bar:

        def show(news: Progress) -> None:
            best = "" if news.best is None else f"  best {news.best} {METRICS[news.metric].text(news.score)}"
            text = f"{news.fits} models{best}  now {', '.join(news.now)}"
            total = news.seconds + news.seconds_left
            bar.update(completed=news.seconds, total=total, text=text, seconds_left=news.seconds_left)

        yield show


def _print_leaderboard(table: pd.DataFrame) -> None:
    from gcnsl.training import METRICS

    text = METRICS[table["metric"].iloc[0]].text
    rows = (
        (
            escape(row.model),
            text(row.validation),
            text(row.test),
            f"{row.train_seconds:.1f} s",
            f"{1000 * row.predict_seconds:.0f} ms",
            escape(row.verdict),
        )
        for row in table.head(SHOWN).itertuples()
    )
    more = f"and {len(table) - SHOWN} more: --json shows all" if len(table) > SHOWN else None
    headings = ("model", "valid.", "test", "train", "predict", "verdict")
    title = f"Leaderboard, {table['metric'].iloc[0]}"
    print_table(headings, rows, title=title, caption=more, right=headings[1:5])


def _print_report(classifier: NodeClassifier, reports: list[TrainingReport], asked: AutoRequest, metric: str) -> None:
    report = reports[0]
    facts = {"test accuracy": "–  [dim]no node was held back[/]"} if report.test is None else {}
    facts |= {} if report.test is None else metric_facts(report.test, metric)
    spread = _spread(reports, metric)
    if spread is not None:
        mean, deviation = spread
        facts[f"test {metric} on {len(reports)} splits"] = (
            f"{mean:.3f} ± {deviation:.3f} [dim](one standard deviation)[/]"
        )
    facts["chosen by"] = chosen_by(classifier, metric)
    facts["time"] = f"{duration(report.seconds)} [dim]on {report.device}[/]"
    facts["saved in"] = "nowhere [dim](-o FOLDER saves it)[/]" if asked.output is None else str(asked.output)
    print_facts(f"{report.method} on {report.graph}", facts)
    if report.test is not None:
        print_classes(report.test)
    if asked.plot is not None and report.test is not None:
        say("Picture", asked.plot, where=out)
    if asked.page is not None:
        say("Page", asked.page, where=out)
    if asked.output is not None:
        print_next(classifier, shlex.quote(str(asked.output)))


def chosen_by(classifier: NodeClassifier, metric: str) -> str:
    """Which nodes the choice was made on, in words."""
    if classifier.options.get("keep_validation"):
        return f"{metric} on the {classifier.val_mask_.sum():,} validation nodes, which no model has learned from"
    nodes = int((classifier.train_mask_ | classifier.val_mask_).sum())
    return f"{metric} on {nodes:,} training and validation nodes, each judged by models that had not learned from it"


def _spread(reports: list[TrainingReport], metric: str) -> tuple[float, float] | None:
    """Mean and standard deviation over the splits; ``None`` if there is one, or no test nodes."""
    values = [report.test.metrics[metric] for report in reports if report.test is not None]
    return (fmean(values), stdev(values)) if len(values) > 1 else None


def _print_json(classifier: NodeClassifier, reports: list[TrainingReport], asked: AutoRequest) -> None:
    table, saved = classifier.leaderboard_, None if asked.output is None else str(asked.output)
    metric = table["metric"].iloc[0]
    answer = asdict(reports[0]) | {"leaderboard": table.to_dict("records"), "saved": saved}
    answer["page"] = asked.page and str(asked.page)
    answer["chosen_by"] = chosen_by(classifier, metric)
    if len(reports) > 1:
        answer["runs"] = [None if each.test is None else each.test.metrics[metric] for each in reports]
    print_json(answer)
