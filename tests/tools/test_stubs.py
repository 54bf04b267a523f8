"""What editors and type checkers are told of constructors is what is declared."""

import importlib
from pathlib import Path

import pytest
from tools.stubs import PACKAGES, stub


@pytest.mark.parametrize("package", PACKAGES)
def test_stubs_are_those_of_today(package) -> None:
    home = Path(importlib.import_module(package).__file__)
    assert home.with_suffix(".pyi").read_text(encoding="utf-8") == stub(package), "run python -m tools.stubs"
