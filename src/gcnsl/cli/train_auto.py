"""``gcnsl train`` without a method: the best ensemble, a leaderboard, and how much both depend on the split."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

from rich.markup import escape

from gcnsl.cli.console import busy, duration, print_json, print_table, progress
from gcnsl.cli.graph_source import GraphSource
from gcnsl.cli.measured_output import (
    method_name,
    print_result,
    remark_on_imbalance,
    train_as_json,
    write_picture_and_page,
)
from gcnsl.cli.model_saving import TrainRequest, finishing, save_finished, saved_if_interrupted
from gcnsl.cli.worker_options import workers

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd
    from torch_geometric.data import Data

    from gcnsl.auto import ChosenBy, Progress
    from gcnsl.estimator import NodeClassifier
    from gcnsl.evaluation import Measured
    from gcnsl.runs.executor import Executor

SHOWN = 15


@dataclass(frozen=True, kw_only=True)
class AutoRequest(TrainRequest):
    """What was asked for; ``settings`` are those of the selection, ``runs`` the number of splits."""

    runs: int
    settings: dict[str, Any]
    cluster: str | None


def train_best(source: GraphSource, asked: AutoRequest) -> None:
    """Find the best model on each split, save that of the first, and print what came of it."""
    with busy("Reading the graph", quiet=asked.quiet):
        from gcnsl.auto import AutoSettings

        metric = AutoSettings().changed(**asked.settings).metric
        from gcnsl.auto.journal import remove_journal
        from gcnsl.estimator import NodeClassifier

        runs = asked.run + asked.runs
        data = source.read_labelled(split=asked.split, seed=asked.seed, runs=runs, root=asked.root)
    remark_on_imbalance(data, asked.settings.get("metric"), quiet=asked.quiet)
    measured = []
    own = nullcontext()  # then the selection starts processes of its own
    with own if asked.cluster is None else workers(asked.cluster, quiet=asked.quiet) as executor:
        for number in range(asked.runs):
            classifier = NodeClassifier(
                "auto",
                **asked.settings,
                random_state=asked.seed + asked.run + number,
                device=asked.device,
                minutes=asked.minutes,
                checkpoint=asked.checkpoint(number),
            )
            measured.append(_train(classifier, data, asked, number, executor))
            if number == 0:
                first = classifier
    with finishing(asked.output):
        for number in range(asked.runs):
            journal = asked.checkpoint(number)
            if journal is not None:
                remove_journal(journal)
        write_picture_and_page(first, data, measured[0], asked)
        if asked.as_json:
            _print_json(first, data, measured, asked)
            return
        _print_leaderboard(first.leaderboard_, first.chosen_by_)
        print_result(first, data, measured[0], asked, _facts(first, measured, metric), metric)


def _train(
    classifier: NodeClassifier, data: Data, asked: AutoRequest, number: int, executor: Executor | None
) -> Measured:
    """Find the best model on one split; that of the first is saved at once."""
    from gcnsl.evaluation import measure_split
    from gcnsl.graph import split_count

    run = (asked.run + number) % split_count(data)
    with saved_if_interrupted(classifier, asked, number), _progress_shown(quiet=asked.quiet) as classifier.on_epoch:
        classifier.fit_graph(data, run=run, all_labels=asked.all_labels, root=asked.root, executor=executor)
    if asked.output is not None and number == 0:
        classifier.checkpoint = None  # the journals are kept until the last run is finished
        save_finished(classifier, asked.output)
    with finishing(asked.output):
        return measure_split(classifier, data, run)


@contextmanager
def _progress_shown(*, quiet: bool) -> Iterator[Callable[[Progress], None]]:
    """A bar over the time budget: what is being tried, and the best so far."""
    from gcnsl.training import METRICS

    with progress("Searching", unit="model", quiet=quiet) as bar:

        def show(news: Progress) -> None:
            best = "" if news.best is None else f"  best {news.best} {METRICS[news.metric].text(news.score)}"
            now = f"  now {', '.join(news.now)}" if news.now else ""
            text = f"{news.fits} models{best}{now}"
            total = news.seconds + news.seconds_left
            bar.update(completed=news.seconds, total=total, text=text, seconds_left=news.seconds_left)

        yield show


def _print_leaderboard(table: pd.DataFrame, chosen_by: ChosenBy) -> None:
    from gcnsl.auto.selection import shown_scores
    from gcnsl.training import METRICS

    text, scores = METRICS[table["metric"].iloc[0]].text, shown_scores(table)
    rows = (
        (
            escape(row.model),
            *(text(getattr(row, name)) for name in scores),
            f"{row.train_seconds:.1f} s",
            f"{1000 * row.predict_seconds:.0f} ms",
            escape(row.verdict),
        )
        for row in table.head(SHOWN).itertuples()
    )
    short = {"validation": "valid.", "first_fold": "fold 1", "test": "test"}
    headings = ("model", *(short[name] for name in scores), "train", "predict", "verdict")
    caption = f"valid. is on {chosen_by.nodes:,} nodes"
    caption += f", fold 1 on {chosen_by.first_fold:,} of them" if "first_fold" in scores else ""
    caption += f"; {chosen_by.metric} has chosen" if chosen_by.metric != table["metric"].iloc[0] else ""
    more = f"; {len(table) - SHOWN} more: --json shows all" if len(table) > SHOWN else ""
    title = f"Leaderboard, {table['metric'].iloc[0]}"
    print_table(headings, rows, title=title, caption=caption + more, right=headings[1:-1])


def _facts(classifier: NodeClassifier, measured: list[Measured], metric: str) -> dict[str, str]:
    """What is told about the ensemble, beside the metrics on the test nodes of the first split."""
    from gcnsl.training import METRICS

    facts, values = {}, [each.metrics[metric] for each in measured if each.kind == "test"]
    if not values:
        first, is_blend = classifier.leaderboard_.iloc[0], method_name(classifier) == "auto"
        nodes = classifier.chosen_by_.nodes if is_blend else classifier.chosen_by_.first_fold
        how = "each by models that had not learned from it" if is_blend else "which it has not learned from"
        score = METRICS[metric].text(first["validation" if is_blend else "first_fold"])
        facts[f"validation {metric}"] = f"{score} [dim]on {nodes:,} nodes, {how}[/]"
    if len(values) > 1:
        spread = f"{fmean(values):.3f} ± {stdev(values):.3f} [dim](one standard deviation)[/]"
        facts[f"test {metric} on {len(measured)} splits"] = spread
    facts["chosen by"] = str(classifier.chosen_by_)
    device = classifier.fitted_.prepared.device
    facts["time"] = f"{duration(classifier.history_.seconds)} [dim]on {device}[/]"
    return facts


def _print_json(classifier: NodeClassifier, data: Data, measured: list[Measured], asked: AutoRequest) -> None:
    from gcnsl.graph import split_count

    table, run = classifier.leaderboard_, asked.run % split_count(data)
    metric = table["metric"].iloc[0]
    answer = train_as_json(classifier, data, measured[0], run, asked) | {
        "leaderboard": table.to_dict("records"),
        "chosen_by": str(classifier.chosen_by_),
    }
    if len(measured) > 1:
        answer["runs"] = [each.metrics[metric] if each.kind == "test" else None for each in measured]
    print_json(answer)
