"""Pictures and HTML pages as files: formats, fonts and templates. A page is one file and needs no network."""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gcnsl.errors import ArgumentError
from gcnsl.files import atomic_write

if TYPE_CHECKING:
    from jinja2 import Template
    from matplotlib.figure import Figure

FORMATS = (".png", ".svg", ".pdf")
FONTS = (
    "DejaVu Sans", "Noto Sans", "Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans CJK KR", "Noto Sans Arabic",
    "Noto Sans Hebrew", "Noto Sans Devanagari", "Noto Sans Thai", "Noto Emoji", "WenQuanYi Zen Hei",
    "WenQuanYi Micro Hei", "Droid Sans Fallback", "Microsoft YaHei", "SimHei", "Yu Gothic", "MS Gothic",
    "Malgun Gothic", "PingFang SC", "Hiragino Sans", "Apple SD Gothic Neo", "Arial Unicode MS", "Segoe UI Symbol",
)  # fmt: skip
"""Fonts to look for glyphs in, where the machine has them."""


def text_style() -> dict[str, Any]:
    """Settings for ``mpl.rc_context`` that show users' names as they are: no formulas in dollar signs, every script."""
    from matplotlib.font_manager import fontManager

    there = set(fontManager.get_font_names())
    return {"text.parse_math": False, "font.family": [font for font in FONTS if font in there]}


def check_picture(path: str | os.PathLike[str]) -> Path:
    """Return the path if it ends in a supported format."""
    if Path(path).suffix.lower() not in FORMATS:
        raise ArgumentError("plot", os.fspath(path), f"must end in one of {', '.join(FORMATS)}")
    return Path(path)


def save_picture(figure: Figure, path: str | os.PathLike[str]) -> Path:
    """Write a figure in the format given by the file's ending, and return the path."""
    path = check_picture(path)
    content = io.BytesIO()
    with warnings.catch_warnings():  # a character that no font has is drawn as a box, which says enough
        warnings.simplefilter("ignore", UserWarning)
        figure.savefig(content, format=path.suffix[1:].lower())
    atomic_write(path, content.getvalue())
    return path


def check_page(path: str | os.PathLike[str]) -> Path:
    """Return the path if it ends as HTML does."""
    if Path(path).suffix.lower() not in (".html", ".htm"):
        raise ArgumentError("page", os.fspath(path), "must end in .html")
    return Path(path)


def find_template(package: str, name: str, **filters: Callable[..., Any]) -> Template:
    """A Jinja template in the folder ``page`` of a package, which may include files of the shared ``gcnsl/page``.

    Values are escaped, ``tojson`` writes ``<`` so that it can't end a script, and an unknown name is an error.
    """
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    files = ChoiceLoader([PackageLoader(package, "page"), PackageLoader("gcnsl", "page")])
    pages = Environment(loader=files, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    pages.filters |= filters
    pages.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "ensure_ascii": False}
    return pages.get_template(name)
