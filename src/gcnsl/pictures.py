"""Pictures as files: their format is checked before any work is done, and they are complete or not there at all."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import TYPE_CHECKING

from gcnsl.errors import ArgumentError
from gcnsl.files import atomic_write

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = (".png", ".svg", ".pdf")


def check_picture(path: str | os.PathLike[str]) -> Path:
    """The path, if it ends in a format that can be drawn."""
    if Path(path).suffix.lower() not in FORMATS:
        raise ArgumentError("plot", os.fspath(path), f"must end in one of {', '.join(FORMATS)}")
    return Path(path)


def save_picture(figure: Figure, path: str | os.PathLike[str]) -> Path:
    """Write a figure in the format that the file's ending names, and return its path."""
    path = check_picture(path)
    content = io.BytesIO()
    figure.savefig(content, format=path.suffix[1:].lower())
    atomic_write(path, content.getvalue())
    return path
