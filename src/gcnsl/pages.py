"""Pages for a browser: each is one file that needs no network, and all share a style and a script for their tables."""

from collections.abc import Callable
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined, Template


def find_template(package: str, name: str, **filters: Callable[..., Any]) -> Template:
    """A template in the folder ``page`` of a package, which may include what is in the shared folder ``gcnsl/page``.

    Values are escaped, ``tojson`` writes ``<`` so that it can't end a script, and an unknown name is an error.
    """
    files = ChoiceLoader([PackageLoader(package, "page"), PackageLoader("gcnsl", "page")])
    pages = Environment(loader=files, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    pages.filters |= filters
    pages.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "ensure_ascii": False}
    return pages.get_template(name)
