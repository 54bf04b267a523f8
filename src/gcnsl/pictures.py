"""Pictures as files. The format can be checked before any work is done."""

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
LITERAL_TEXT = {"text.parse_math": False}
"""For ``mpl.rc_context``: users' names are shown as they are, though Matplotlib takes dollar signs for formulas."""


def check_picture(path: str | os.PathLike[str]) -> Path:
    """Return the path if it ends in a supported format."""
    if Path(path).suffix.lower() not in FORMATS:
        raise ArgumentError("plot", os.fspath(path), f"must end in one of {', '.join(FORMATS)}")
    return Path(path)


def save_picture(figure: Figure, path: str | os.PathLike[str]) -> Path:
    """Write a figure in the format given by the file's ending, and return the path."""
    path = check_picture(path)
    content = io.BytesIO()
    figure.savefig(content, format=path.suffix[1:].lower())
    atomic_write(path, content.getvalue())
    return path
