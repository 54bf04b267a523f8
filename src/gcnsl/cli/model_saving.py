"""Save a model; on a full disk, fall back to a temporary folder."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from gcnsl.cli.console import say
from gcnsl.errors import WriteError

if TYPE_CHECKING:
    from gcnsl.estimator import NodeClassifier


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
