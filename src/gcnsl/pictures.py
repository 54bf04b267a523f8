"""Pictures as files: of a kind that is known before any work is done, and there whole or not at all."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import TYPE_CHECKING

from gcnsl.errors import InputError
from gcnsl.files import atomic_write

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS = (".png", ".svg", ".pdf")


def check_picture(path: str | os.PathLike[str]) -> Path:
    """The path, if its ending is that of a picture we can draw."""
    if Path(path).suffix.lower() not in KINDS:
        raise InputError(f"plot({os.fspath(path)!r}) is no kind of picture: end its name in {', '.join(KINDS)}")
    return Path(path)


def save_picture(figure: Figure, path: str | os.PathLike[str]) -> Path:
    """Write a figure, in the format that the file's ending names, and return its path."""
    path = check_picture(path)
    content = io.BytesIO()
    figure.savefig(content, format=path.suffix[1:].lower())
    atomic_write(path, content.getvalue())
    return path
