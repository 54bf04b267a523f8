"""Save a trained model, and lose it for no full disk."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from gcnsl.errors import WriteError

if TYPE_CHECKING:
    from gcnsl.estimator import NodeClassifier


def reserve(context: typer.Context, output: Path) -> None:
    """Check that a model can be saved in a folder, and keep other commands from doing so until this one has ended."""
    from gcnsl.files import reserved
    from gcnsl.storage import check_place

    check_place(output)
    context.with_resource(reserved(output))


def save_model(classifier: NodeClassifier, output: Path) -> None:
    """Save a model in a folder; if that is not possible, among the temporary files.

    Raises:
        WriteError: If the folder can't be written. The message says where the model is instead. The checkpoint stays,
            so that the same command, without training again, saves the model once there is room for it.
    """
    try:
        classifier.save(output)
    except WriteError as error:
        raise WriteError(f"{error}; {_rescue(classifier, output.name)}") from error


def _rescue(classifier: NodeClassifier, name: str) -> str:
    """Save the model somewhere, and say where."""
    checkpoint, classifier.checkpoint = classifier.checkpoint, None  # saving would remove it
    try:
        elsewhere = Path(tempfile.mkdtemp(prefix="gcnsl-"), name)
        classifier.save(elsewhere)
    except OSError:
        is_kept = checkpoint is not None and Path(checkpoint).exists()
        return f"the run is in {checkpoint}, and the same command continues it" if is_kept else "the model is lost"
    finally:
        classifier.checkpoint = checkpoint
    return f"the model is in {elsewhere}: move it to where you want it"
