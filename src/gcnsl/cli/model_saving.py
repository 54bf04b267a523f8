"""Where a model and its run are kept: checked before training, saved after it, and after Ctrl-C or on a full disk."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from gcnsl.cli.console import busy, in_shell, say
from gcnsl.errors import Interrupted, WriteError

if TYPE_CHECKING:
    from gcnsl.estimator import NodeClassifier


@dataclass(frozen=True, kw_only=True)
class TrainRequest:
    """The options that mean the same for one method and for ``auto``, by their names."""

    output: Path | None
    split: str
    run: int
    all_labels: bool
    seed: int
    device: str
    minutes: float | None
    plot: Path | None
    page: Path | None
    root: Path | None
    as_json: bool
    quiet: bool
    resumable: bool = True

    def checkpoint(self, number: int = 0) -> Path | None:
        """Where a run is kept until the model is saved, if it is; ``number`` counts the runs of this command."""
        return None if self.output is None or not self.resumable else checkpoint_of(self.output, number)


def checkpoint_of(output: Path, number: int = 0) -> Path:
    """Where a run is kept until its model is saved; ``number`` counts the runs of a command."""
    output = output if output.name else output.absolute()
    return output.with_name(f"{output.name}.checkpoint{number or ''}")


def reserve(context: typer.Context, output: Path) -> bool:
    """Check that a model can be saved in a folder; return whether the run can be kept beside it until then.

    If not, for example because another command keeps its own run there, a note says so. Otherwise the place of the
    checkpoint is reserved until this command has ended.
    """
    from gcnsl.files import check_writable
    from gcnsl.storage import check_place

    check_place(output)
    check_writable(output)
    problem = context.with_resource(_reserved(checkpoint_of(output)))
    if problem:
        say("Note", f"{problem}, so this run can't be resumed", "yellow")
    return not problem


@contextmanager
def _reserved(path: Path) -> Iterator[str]:
    """Reserve a path by a lock on a hidden file beside it; gives why that is not possible, and nothing if it is."""
    from filelock import FileLock, Timeout

    from gcnsl.files import new_folder, writing

    file, problem = path.with_name(f".{path.name}.lock"), ""
    with ExitStack() as held:
        try:
            with writing(path):
                held.enter_context(new_folder(path.parent))
                try:
                    held.enter_context(FileLock(file).acquire(timeout=0))
                    held.callback(file.unlink, missing_ok=True)
                except Timeout:
                    problem = f"another command is using {path}"
        except WriteError as error:
            problem = str(error)
        yield problem


def save_model(classifier: NodeClassifier, output: Path) -> None:
    """Save a model in a folder; if that is not possible, in a temporary folder.

    Raises:
        WriteError: If the folder can't be written. The message says where the model is instead. The checkpoint stays,
            so that the same command, without training again, saves the model once there is room for it.
    """
    try:
        classifier.save(output)
    except WriteError as error:
        raise WriteError(f"{error}; {_rescue(classifier, output)}") from error


def _rescue(classifier: NodeClassifier, output: Path) -> str:
    """Save the model somewhere, and say where."""
    checkpoint, classifier.checkpoint = classifier.checkpoint, None  # saving would remove it
    folder = None
    try:
        folder = Path(tempfile.mkdtemp(prefix="gcnsl-"))
        classifier.save(folder / output.name)
    except OSError:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        kept = checkpoint_of(output)
        return f"the run is in {kept}, and the same command continues it" if kept.exists() else "the model is lost"
    finally:
        classifier.checkpoint = checkpoint
    return f"the model is in {folder / output.name}: move it to where you want it"


def say_if_interrupted(classifier: NodeClassifier) -> None:
    """Remind the user of a model that its training can be continued."""
    if classifier.history_.stopped == "interrupted":
        epochs = f" after epoch {len(classifier.history_)}" if len(classifier.history_) else ""
        when = f"training was interrupted{epochs}"
        say("Note", f"{when}; this is the best model until then, and the same `gcnsl train` completes it", "yellow")


@contextmanager
def saved_if_interrupted(classifier: NodeClassifier, asked: TrainRequest, number: int = 0) -> Iterator[None]:
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


def save_finished(classifier: NodeClassifier, output: Path) -> None:
    """Save a model whose training has ended; an interruption waits until it is saved."""
    from gcnsl.execution import Interruption

    with finishing(output), Interruption() as interruption, interruption.whole():
        save_model(classifier, output)


def save_so_far(
    classifier: NodeClassifier, interruption: Interrupted, asked: TrainRequest, *, spared: bool, number: int = 0
) -> str:
    """Save the best model so far, unless an older one is to be spared; say so, and how to continue."""
    from gcnsl.execution import Interruption

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
