"""The short form of the program: a few cases of each kind."""

import random
import sys

import pytest
from bench.hostile.cases import Verdicts, run_cases

from bench.hostile import __main__ as program
from bench.hostile import chosen_cases


def tried(what: str, count: int, seed: int = 0, only: tuple[str, ...] = ("",)) -> Verdicts:
    chosen = chosen_cases(what, count, random.Random(seed))
    return run_cases([case for case in chosen if case.group.startswith(only)], apart=False)


def test_tables() -> None:
    verdicts = tried("tables", 200)
    assert verdicts.wrong == []
    assert min(verdicts.total["worked"], verdicts.total["refused"]) > 50


def test_arguments() -> None:
    quick = ("nn.", "reconnect", "esc", "sc", "Spectral", "from_", "synthetic", "GCNSLClassifier", "Search", "search")
    verdicts = tried("api", 1000, only=quick)
    assert verdicts.wrong == []
    assert verdicts.total["refused"] > 200


@pytest.mark.usefixtures("single_thread")
def test_models() -> None:
    verdicts = tried("models", 60)
    assert verdicts.wrong == []
    assert verdicts.total["refused"] > 20


def test_the_program_prints_the_seed_and_a_summary(monkeypatch, capsys) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(sys, "argv", ["hostile", "tables", "--cases", "3", "--seed", "7"])
    with pytest.raises(SystemExit) as stop:
        program.main()
    assert stop.value.code == 0
    printed = capsys.readouterr().out
    assert "tables: 3 cases, seed 7" in printed
    assert "accepted" in printed
