"""Pages for a browser: each is one file that needs no network, and all share a style and a script for their tables."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gcnsl.errors import ArgumentError

if TYPE_CHECKING:
    from jinja2 import Template


def check_page(path: str | os.PathLike[str]) -> Path:
    """Return the path if browsers know by its ending that it is a page."""
    if Path(path).suffix.lower() not in (".html", ".htm"):
        raise ArgumentError("page", os.fspath(path), "must end in .html")
    return Path(path)


def find_template(package: str, name: str, **filters: Callable[..., Any]) -> Template:
    """A template in the folder ``page`` of a package, which may include what is in the shared folder ``gcnsl/page``.

    Values are escaped, ``tojson`` writes ``<`` so that it can't end a script, and an unknown name is an error.
    """
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    files = ChoiceLoader([PackageLoader(package, "page"), PackageLoader("gcnsl", "page")])
    pages = Environment(loader=files, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    pages.filters |= filters
    pages.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "ensure_ascii": False}
    return pages.get_template(name)
