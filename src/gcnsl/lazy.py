"""Lazy imports of a package's exports (PEP 562): torch and its like take seconds to load."""

import ast
import importlib.util
import sys
from collections.abc import Callable
from functools import cache
from typing import Any


def lazy(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package that has its imports below ``if TYPE_CHECKING:``.

    What they import, for mypy and editors, is loaded from where they say, so that each name is written in one place.
    """

    def load(name: str) -> Any:
        if name not in _homes(package):
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(_homes(package)[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return load, lambda: sorted({*vars(sys.modules[package]), *_homes(package)})


@cache
def _homes(package: str) -> dict[str, str]:
    """The module of each name that a package imports for type checking."""
    spec: Any = importlib.util.find_spec(package)
    blocks = [node for node in ast.parse(spec.loader.get_source(package)).body if isinstance(node, ast.If)]
    imports = [node for block in blocks for node in block.body if isinstance(node, ast.ImportFrom)]
    return {alias.name: node.module for node in imports if node.module for alias in node.names}
