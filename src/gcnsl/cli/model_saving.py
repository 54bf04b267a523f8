"""Saved models: where one and its run are kept, also after Ctrl-C and on a full disk; and how one is read and shown."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from gcnsl.cli.console import busy, in_shell, progress, say
from gcnsl.errors import Interrupted, WriteError

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from gcnsl.cli.graph_source import GraphSource
    from gcnsl.estimator import NodeClassifier
    from gcnsl.evaluation import Measured

SECONDS = 30.0
"""How long nodes are explained for a page, unless something else is asked for."""


def reserve(context: typer.Context, output: Path) -> Path | None:
    """Check that a model can be saved in a folder; return where its run is kept until then, reserved for this command.

    If it can't be kept, for example because another command keeps its own run there, a note says so.
    """
    from filelock import FileLock, Timeout

    from gcnsl.files import check_writable, new_folder, writing
    from gcnsl.storage import check_place

    check_place(output)
    check_writable(output)
    place = output if output.name else output.absolute()
    checkpoint, lock = (
        place.with_name(name) for name in (f"{place.name}.checkpoint", f".{place.name}.checkpoint.lock")
    )
    try:
        with writing(checkpoint):
            context.with_resource(new_folder(checkpoint.parent))
            context.with_resource(FileLock(lock, timeout=0))
            context.call_on_close(partial(lock.unlink, missing_ok=True))
            return checkpoint
    except WriteError as error:
        problem = f"another command is using {checkpoint}" if isinstance(error.__cause__, Timeout) else str(error)
    say("Note", f"{problem}, so this run can't be resumed", "yellow")
    return None


@contextmanager
def kept_if_interrupted(classifier: NodeClassifier, output: Path | None, *, quiet: bool) -> Iterator[None]:
    """Say if training continues an earlier run; if it is interrupted, save the best model so far.

    A model that is already there is spared, unless training continues an earlier run: then it is what that had saved.
    """
    checkpoint: Path | None = classifier.checkpoint  # type: ignore[assignment]
    continues = checkpoint is not None and checkpoint.exists()
    spared = output is not None and output.exists() and not continues
    if continues and not quiet:
        say("Continuing", f"from {checkpoint}", "cyan")
    try:
        yield
    except Interrupted as interruption:
        when = str(interruption).partition(";")[0]
        if output is None:
            told = f"{when}; nothing was saved: -o FOLDER saves the best model so far"
            raise Interrupted(told) from None
        saved = f"{output} is still the older model" if spared else "there is no model yet"
        if interruption.so_far is not None and not spared:
            say("Interrupted", "saving the best model so far", "yellow")
            with busy("Saving the best model so far", quiet=quiet):
                save_model(classifier, output, interrupted=True)
            epoch = classifier.history_.best_epoch
            saved = f"{output} is the best model so far{f', of epoch {epoch}' if epoch else ''}"
        again = "This continues" if checkpoint is not None and checkpoint.exists() else "This begins anew"
        raise Interrupted(f"{when}; {saved}. {again}:\n  {in_shell(['gcnsl', *sys.argv[1:]])}") from None


@contextmanager
def finishing(output: Path | None) -> Iterator[None]:
    """While what follows training is done: if it is interrupted, say what has been saved."""
    try:
        yield
    except KeyboardInterrupt as interruption:
        saved = "nothing was saved: -o FOLDER saves the model" if output is None else f"{output} is the finished model"
        raise interruption if str(interruption) else Interrupted(f"interrupted after training; {saved}") from None


def save_model(classifier: NodeClassifier, output: Path, *, interrupted: bool = False) -> None:
    """Save a model in a folder or, if that is not possible, in a temporary folder.

    An interruption waits until it is saved; if training was ``interrupted``, further ones are ignored.

    Raises:
        WriteError: If the folder can't be written. The message says where the model is instead. The checkpoint stays,
            so that the same command, without training again, saves the model once there is room for it.
    """
    from gcnsl.execution import Interruption

    with Interruption() as interruption, interruption.whole():
        if interrupted:
            interruption.ignore_further()
        try:
            classifier.save(output)
        except WriteError as error:
            raise WriteError(f"{error}; {_rescue(classifier, output)}") from error


def _rescue(classifier: NodeClassifier, output: Path) -> str:
    """Save the model somewhere, and say where."""
    checkpoint, classifier.checkpoint = classifier.checkpoint, None  # saving would remove it
    folder = Path()
    try:
        folder = Path(tempfile.mkdtemp(prefix="gcnsl-"))
        classifier.save(folder / output.name)
    except OSError:
        if folder.name:
            shutil.rmtree(folder, ignore_errors=True)
        is_kept = checkpoint is not None and Path(checkpoint).exists()
        return f"the run is in {checkpoint}, and the same command continues it" if is_kept else "the model is lost"
    finally:
        classifier.checkpoint = checkpoint
    return f"the model is in {folder / output.name}: move it to where you want it"


def open_model(
    model: Path, device: str, source: GraphSource | None = None, root: Path | None = None
) -> tuple[NodeClassifier, Data | None]:
    """A saved model, and the graph that is named beside it, if any, read as that of the model was.

    If training was interrupted, a line reminds that it can be continued.
    """
    from gcnsl.estimator import NodeClassifier

    classifier, data = NodeClassifier.load(model, device=device), None
    if source is not None and source.is_given:
        data = source.like(classifier.graph_).read(split=None, root=root, encoder=classifier.encoder_)
    if classifier.history_.stopped == "interrupted":
        epochs = f" after epoch {len(classifier.history_)}" if len(classifier.history_) else ""
        when = f"training was interrupted{epochs}"
        say("Note", f"{when}; this is the best model until then, and the same `gcnsl train` completes it", "yellow")
    return classifier, data


def write_page(
    classifier: NodeClassifier, path: Path, data: Data | None, *, seconds: float = SECONDS, quiet: bool, **facts: Any
) -> Measured:
    """Write the page as :func:`gcnsl.evaluation.model_page.write_model_page` does, and show what it is doing."""
    from gcnsl.evaluation.model_page import write_model_page

    with progress("Explaining nodes", seconds, unit="node", quiet=quiet) as bar:
        began = time.monotonic()

        def show(done: int, total: int) -> None:
            spent = time.monotonic() - began
            left = max(0.0, min(seconds - spent, spent * (total - done) / done))
            bar.update(completed=spent, total=spent + left, text=f"{done:,} of {total:,}", seconds_left=left)

        return write_model_page(classifier, path, data, seconds=seconds, on_progress=show, **facts)
