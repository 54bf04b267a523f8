"""Stubs of the packages whose constructors take their arguments from declarations, for editors and type checkers.

    python -m tools.stubs

writes into each an ``__init__.pyi`` that says what ``help()`` says, for programs that do not run the code.
"""

import importlib
import inspect
import re
import subprocess
import sys
import textwrap
from itertools import groupby
from pathlib import Path
from typing import Any

PACKAGES = ("gcnsl.estimator", "gcnsl.nn")
_HOMES = {"Callable": "collections.abc", "Any": "typing", "Literal": "typing"}


def stub(package: str) -> str:
    """The exports of a package; a subclass with its constructor written out stands for a class with declared ones."""
    module = importlib.import_module(package)
    exports = sorted(
        (getattr(module, name) for name in module.__all__), key=lambda each: (each.__module__, each.__name__)
    )
    declared = [each for each in exports if hasattr(vars(each).get("__init__"), "__signature__")]
    classes = "\n".join(map(_class, declared))
    lines = [f'"""The exports of {package} for editors and type checkers, written by `python -m tools.stubs`."""', ""]
    lines += ["import os"] * ("os." in classes)
    for home, kinds in groupby(_HOMES, _HOMES.__getitem__):
        used = [kind for kind in kinds if re.search(rf": .*\b{kind}\b", classes)]
        lines += [f"from {home} import {', '.join(used)}"] if used else []
    lines += [""]
    for home, members in groupby(exports, lambda each: each.__module__):
        names = (each.__name__ + f" as _{each.__name__}" * (each in declared) for each in members)
        lines += [f"from {home} import {', '.join(names)}"]
    lines += [f"__all__ = {module.__all__}", classes]
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", "stubs.pyi", "-"]
    done = subprocess.run(command, input="\n".join(lines), cwd=Path(__file__).parent, stdout=-1, text=True, check=True)
    return done.stdout


def _class(kind: Any) -> str:
    """A class with the first line of its documentation, its arguments and its constructor."""
    text, parameters = inspect.cleandoc(kind.__doc__), inspect.signature(kind).parameters.values()
    section = "Options:" if "\nOptions:\n" in text else "Args:"
    arguments = text.partition(f"\n{section}\n")[2].strip("\n").partition("\n\n")[0]
    given = ["self", *(re.sub(r"typing\.|collections\.abc\.", "", str(each)) for each in parameters)]
    given.insert(1 + sum(each.kind is not each.KEYWORD_ONLY for each in parameters), "*")
    lines = [f'"""{text.splitlines()[0]}', "", section, *arguments.splitlines(), '"""', ""]
    lines += ["def __init__(", *(f"    {each}," for each in given), ") -> None: ..."]
    return f"class {kind.__name__}(_{kind.__name__}):\n" + textwrap.indent("\n".join(lines), "    ") + "\n"


if __name__ == "__main__":
    for each in PACKAGES:
        home = importlib.import_module(each).__file__ or ""
        Path(home).with_suffix(".pyi").write_text(stub(each), encoding="utf-8")
