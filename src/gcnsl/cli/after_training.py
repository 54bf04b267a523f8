"""What follows training on the command line: what is saved after Ctrl-C, what is printed, and the next commands."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rich.markup import escape

from gcnsl.cli.console import busy, in_shell, out, print_facts, say
from gcnsl.cli.model_saving import save_model
from gcnsl.cli.page_writing import write_page
from gcnsl.cli.quality_tables import metric_facts, print_classes
from gcnsl.cli.train_request import TrainRequest
from gcnsl.errors import Interrupted

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from gcnsl.estimator import NodeClassifier
    from gcnsl.evaluation.training_report import TrainingReport


def say_if_interrupted(classifier: "NodeClassifier") -> None:
    """Remind the user of a model that its training can be continued."""
    if classifier.history_.stopped == "interrupted":
        epochs = f" after epoch {len(classifier.history_)}" if len(classifier.history_) else ""
        when = f"training was interrupted{epochs}"
        say("Note", f"{when}; this is the best model until then, and the same `gcnsl train` completes it", "yellow")


@contextmanager
def saved_if_interrupted(classifier: "NodeClassifier", asked: TrainRequest, number: int = 0) -> Iterator[None]:
    """Say if training continues an earlier run; if it is interrupted, save the best model so far.

    ``number`` counts the runs of this command. A model that is already there is spared, unless this is the first run
    and continues an earlier one: then the model is what that one had saved.
    """
    output, checkpoint = asked.output, asked.checkpoint(number)
    continues = checkpoint is not None and checkpoint.exists()
    spared = output is not None and output.exists() and (number > 0 or not continues)
    if continues and not asked.quiet:
        say("Continuing", f"from {checkpoint}", "cyan")
    try:
        yield
    except Interrupted as interruption:
        with busy("Saving the best model so far", quiet=asked.quiet):
            told = save_so_far(classifier, interruption, asked, spared=spared, number=number)
        raise Interrupted(told) from None


@contextmanager
def finishing(output: Path | None) -> Iterator[None]:
    """While what follows training is done: if it is interrupted, say what has been saved."""
    try:
        yield
    except KeyboardInterrupt as interruption:
        saved = "nothing was saved: -o FOLDER saves the model" if output is None else f"{output} is the finished model"
        raise interruption if str(interruption) else Interrupted(f"interrupted after training; {saved}") from None


def save_finished(classifier: "NodeClassifier", output: Path) -> None:
    """Save a model whose training has ended; an interruption waits until it is saved."""
    from gcnsl.training.environment import Interruption

    with finishing(output), Interruption() as interruption, interruption.whole():
        save_model(classifier, output)


def save_so_far(
    classifier: "NodeClassifier", interruption: Interrupted, asked: TrainRequest, *, spared: bool, number: int = 0
) -> str:
    """Save the best model so far, unless an older one is to be spared; say so, and how to continue."""
    from gcnsl.training.environment import Interruption

    when, output, checkpoint = str(interruption).partition(";")[0], asked.output, asked.checkpoint()
    if output is None:
        return f"{when}; nothing was saved: -o FOLDER saves the best model so far"
    older = "that of the first run" if number else "still the older model"
    saved = f"{output} is {older}" if spared else "there is no model yet"
    if interruption.so_far is not None and not spared:
        say("Interrupted", "saving the best model so far", "yellow")
        with Interruption() as further:
            further.ignore_further()
            save_model(classifier, output)
        epoch = classifier.history_.best_epoch
        saved = f"{output} is the best model so far{f', of epoch {epoch}' if epoch else ''}"
    again = "This continues" if checkpoint is not None and checkpoint.exists() else "This begins anew"
    return f"{when}; {saved}. {again}:\n  {in_shell(['gcnsl', *sys.argv[1:]])}"


def write_picture_and_page(
    classifier: "NodeClassifier", data: "Data", report: "TrainingReport", asked: TrainRequest, *, title: str
) -> None:
    """Write what ``--plot`` and ``--report`` ask for; ``title`` is the picture's."""
    if asked.plot is not None and report.test is not None:
        from gcnsl.evaluation.quality_picture import draw_quality

        draw_quality(report.test, asked.plot, title=title)
    if asked.page is not None:
        from gcnsl.graph import split_masks

        test = split_masks(data, report.run, need=())["test"]
        write_page(classifier, asked.page, data, nodes=test, quiet=asked.quiet)


def print_result(
    classifier: "NodeClassifier",
    report: "TrainingReport",
    asked: TrainRequest,
    facts: dict[str, str],
    metric: str | None,
) -> None:
    """Print the metrics and other facts, each class, which files were written, and the commands that come next."""
    saved = "nowhere [dim](-o FOLDER saves it)[/]" if asked.output is None else escape(str(asked.output))
    title = f"{report.method} on {report.graph}"
    print_facts(title, metric_facts(report.test, metric) | facts | {"saved in": saved})
    if report.test is not None:
        print_classes(report.test)
        if asked.plot is not None:
            say("Picture", asked.plot, where=out)
    if asked.page is not None:
        say("Page", asked.page, where=out)
    if asked.output is not None:
        _print_next(classifier, asked.output)


def _print_next(classifier: "NodeClassifier", model: Path) -> None:
    """Name the commands that come next, ready to be copied."""
    from gcnsl.graph import UNLABELLED

    unknown = int((classifier.y_ == UNLABELLED).argmax())
    node = str(unknown if classifier.node_ids_ is None else classifier.node_ids_[unknown])
    after_options = ["--"] if node.startswith("-") else []
    commands = (["predict", model, "-o", "predictions.csv"], ["explain", model, *after_options, node])
    say("Next", "".join(f"\n  gcnsl {in_shell(command)}" for command in commands), "bold", where=out)
