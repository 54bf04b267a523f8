"""How good a model is, as the commands show it: metrics, classes, a picture, a page, and what to do next."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.markup import escape

from gcnsl.cli.console import in_shell, out, percent, print_facts, print_table, progress, say
from gcnsl.cli.model_saving import TrainRequest

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from gcnsl.estimator import NodeClassifier
    from gcnsl.evaluation import Measured

SECONDS = 30.0
"""How long nodes are explained for a page, unless something else is asked for."""


def metric_facts(measured: Measured | None, metric: str | None) -> dict[str, str]:
    """All metrics, for a table of facts, the chosen one in bold; ``None`` if there are no test nodes."""
    from gcnsl.training import METRICS

    if measured is None:
        return {"test accuracy": "–  [dim]no node was held back[/]"}
    facts = {}
    for name, value in measured.metrics.items():
        title, text = f"test {name}", METRICS[name].text(value)
        facts[f"[bold]{title}[/]" if name == (metric or "accuracy") else title] = text
    return facts | {"test nodes": f"{measured.nodes:,}"}


def print_classes(measured: Measured) -> None:
    """Print a table with one row per class."""
    shares = ("precision", "recall", "F1")
    rows = (
        (escape(each.name), f"{each.nodes:,}", percent(each.precision), percent(each.recall), percent(each.f1))
        for each in measured.classes
    )
    print_table(("class", "test nodes", *shares), rows, right=("test nodes", *shares))


def remark_on_imbalance(data: Data, metric: str | None, *, quiet: bool) -> None:
    """Suggest a metric in one line, if classes are uneven and none was chosen."""
    from gcnsl.evaluation import find_imbalance

    found = find_imbalance(data.y, data.class_names) if metric is None and not quiet else None
    if found is not None:
        say("Note", f"{found.reason}, so accuracy says little; consider --metric {found.metric}")


def write_page(
    classifier: NodeClassifier,
    path: Path,
    data: Data | None,
    *,
    measured: Measured | None = None,
    name: str | None = None,
    seconds: float = SECONDS,
    quiet: bool = False,
) -> Measured:
    """Write the page as :func:`gcnsl.evaluation.model_page.write_model_page` does, and show what it is doing."""
    from gcnsl.evaluation.model_page import write_model_page

    with progress("Explaining nodes", seconds, unit="node", quiet=quiet) as bar:
        began = time.monotonic()

        def show(done: int, total: int) -> None:
            spent = time.monotonic() - began
            left = max(0.0, min(seconds - spent, spent * (total - done) / done))
            bar.update(completed=spent, total=spent + left, text=f"{done:,} of {total:,}", seconds_left=left)

        return write_model_page(classifier, path, data, measured=measured, name=name, seconds=seconds, on_progress=show)


def train_as_json(classifier: NodeClassifier, data: Data, measured: Measured, run: int, asked: TrainRequest) -> Any:
    """What came of training as plain values; ``test`` is ``None`` if no node was held back."""
    from gcnsl.auto import Blend
    from gcnsl.evaluation.measured import graph_facts

    prepared, history, is_test = classifier.fitted_.prepared, classifier.history_, measured.kind == "test"
    given, learned = graph_facts(classifier, data)
    shares = {name: (share.nodes, share.right) for name, share in measured.learned.items()}
    shares["test"] = (measured.nodes, measured.metrics["accuracy"]) if is_test else (0, None)
    return {
        "method": method_name(classifier),
        "graph": data.get("name") or "graph",
        "run": run,
        "device": str(prepared.device),
        "nodes": {name: nodes for name, (nodes, _) in shares.items()},
        "accuracy": {name: right for name, (_, right) in shares.items()},
        "features": prepared.features.in_words(prepared.graph),
        "test": measured.to_dict() if is_test else None,
        "epochs": len(history),
        "best_epoch": history.best_epoch,
        "stopped": history.stopped,
        "seconds": history.seconds,
        "original": asdict(given),
        "reconnected": learned and asdict(learned),
        "options": classifier.options if isinstance(classifier.fitted_, Blend) else prepared.method.options(),
        "saved": asked.output and str(asked.output),
        "page": asked.page and str(asked.page),
    }


def method_name(classifier: NodeClassifier) -> str:
    """The method of a fitted model, ``auto`` for an ensemble."""
    from gcnsl.auto import AUTO, Blend

    return AUTO if isinstance(classifier.fitted_, Blend) else classifier.fitted_.prepared.method.name


def write_picture_and_page(classifier: NodeClassifier, data: Data, measured: Measured, asked: TrainRequest) -> None:
    """Write what ``--plot`` and ``--report`` ask for."""
    if asked.plot is not None and measured.kind == "test":
        from gcnsl.evaluation.pictures import draw_measured

        draw_measured(measured, asked.plot, title=_title(classifier, data))
    if asked.page is not None:
        write_page(classifier, asked.page, data, measured=measured, quiet=asked.quiet)


def print_result(
    classifier: NodeClassifier,
    data: Data,
    measured: Measured,
    asked: TrainRequest,
    facts: dict[str, str],
    metric: str | None,
) -> None:
    """Print the metrics and other facts, each class, which files were written, and the commands that come next."""
    saved = "nowhere [dim](-o FOLDER saves it)[/]" if asked.output is None else escape(str(asked.output))
    test = measured if measured.kind == "test" else None
    print_facts(_title(classifier, data), metric_facts(test, metric) | facts | {"saved in": saved})
    if test is not None:
        print_classes(test)
        if asked.plot is not None:
            say("Picture", asked.plot, where=out)
    if asked.page is not None:
        say("Page", asked.page, where=out)
    if asked.output is not None:
        _print_next(classifier, asked.output)


def _title(classifier: NodeClassifier, data: Data) -> str:
    return f"{method_name(classifier)} on {data.get('name') or 'graph'}"


def _print_next(classifier: NodeClassifier, model: Path) -> None:
    """Name the commands that come next, ready to be copied."""
    from gcnsl.graph import UNLABELLED

    unknown = int((classifier.y_ == UNLABELLED).argmax())
    node = str(unknown if classifier.node_ids_ is None else classifier.node_ids_[unknown])
    after_options = ["--"] if node.startswith("-") else []
    commands = (["predict", model, "-o", "predictions.csv"], ["explain", model, *after_options, node])
    say("Next", "".join(f"\n  gcnsl {in_shell(command)}" for command in commands), "bold", where=out)
