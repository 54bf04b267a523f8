"""The recipes of CONTRIBUTING.md, followed word for word in a copy of the repository."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .pages import ROOT, text_of

_BLOCK = re.compile(r"^(?:\*\*`([^`]+)`\*\*\n\n)?```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_, *SECTIONS = text_of(ROOT / "CONTRIBUTING.md").split("\n## Add a ")
RECIPES = dict(section.split("\n", 1) for section in SECTIONS)
PRINTED = {"method": "test accuracy", "contender of `auto`": "SGC, four rounds", "dataset": "60", "command": "44"}
"""What the last command of a recipe prints, among other things."""


@pytest.fixture
def checkout(tmp_path) -> Path:
    """A copy of sources and tests, which recipes may change, and a command ``gcnsl`` that runs it."""
    for part in ("src", "tests", "docs"):
        shutil.copytree(
            ROOT / part, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__", "_build", "generated")
        )
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (tmp_path / "data" / "heterophilous").mkdir(parents=True)
    program = tmp_path / "bin" / "gcnsl"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m gcnsl "$@"\n')
    program.chmod(0o755)
    return tmp_path


def run(checkout: Path, *command: str) -> str:
    paths = {"PYTHONPATH": str(checkout / "src"), "PATH": f"{checkout / 'bin'}:{os.environ['PATH']}"}
    done = subprocess.run(command, cwd=checkout, env=os.environ | paths, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def change(file: Path, diff: str) -> None:
    """Add lines after others, each of which occur once."""
    text = file.read_text(encoding="utf-8")
    for hunk in diff.split("@@\n"):
        lines = hunk.splitlines(keepends=True)
        before, after = ("".join(line[1:] for line in lines if line[0] in kept) for kept in (" ", " +"))
        assert text.count(before) == 1, f"{before!r} in {file.name}"
        text = text.replace(before, after)
    file.write_text(text, encoding="utf-8")


def follow(checkout: Path, path: str, language: str, code: str) -> str:
    """Write a file, change one, or run commands; return what they print."""
    if language == "diff":
        change(checkout / path, code)
        return ""
    if language == "bash":
        quick = " --set epochs=2" if "--method" in code else ""
        return run(checkout, "bash", "-c", code.rstrip() + quick)
    if path.endswith(".py"):
        (checkout / path).write_text(code, encoding="utf-8")
        return ""
    run(checkout, sys.executable, "-c", code)
    assert (checkout / path).is_file()
    return ""


@pytest.mark.slow
def test_recipes_lead_to_what_they_say(checkout) -> None:
    tests = ["tests/test_architecture.py", "tests/methods/test_laws.py", "tests/auto/test_candidates.py"]
    assert RECIPES.keys() == PRINTED.keys()
    for what, recipe in RECIPES.items():
        *steps, last = _BLOCK.findall(recipe)
        for step in steps:
            follow(checkout, *step)
        assert PRINTED[what] in follow(checkout, *last)
        tests += [path for path, *_ in steps if path.startswith("tests/")]
    run(checkout, sys.executable, "-m", "pytest", "-q", "-x", "-k", "sgc or not laws", *tests)
