"""The short form of the program: a few cases of each kind."""

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from bench.hostile.cases import Verdicts, run_cases

from bench.hostile import chosen_cases, models

ROOT = Path(__file__).parents[3]
forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes can't be forked here")


def tried(what: str, count: int, seed: int = 0, only: tuple[str, ...] = ("",)) -> Verdicts:
    chosen = chosen_cases(what, count, random.Random(seed))
    return run_cases([case for case in chosen if case.group.startswith(only)], apart=False)


def given(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The program in a process of its own, which has no threads when it forks."""
    command = [sys.executable, "-m", "bench.hostile", *arguments]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT))), "COLUMNS": "150"}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


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
def test_arrays() -> None:
    verdicts = tried("arrays", 300)
    assert verdicts.wrong == []
    assert min(verdicts.total["worked"], verdicts.total["refused"]) > 30


@pytest.mark.usefixtures("single_thread")
def test_models(monkeypatch) -> None:
    monkeypatch.setattr(models, "METHODS", ("gcn-sl", "mlp", "logistic"))
    verdicts = tried("models", 40)
    assert verdicts.wrong == []
    assert verdicts.total["refused"] > 10


@pytest.mark.slow
@forks
def test_kills() -> None:
    done = given("kills", "--cases", "2", "--seed", "0")
    assert done.returncode == 0, done.stdout + done.stderr
    assert all(f"kills, {command}" in done.stdout for command in ("reproduce", "search"))


@pytest.mark.slow
@forks
@pytest.mark.skipif(
    shutil.which("unshare") is None or subprocess.run(["unshare", "-rm", "true"], check=False).returncode != 0,
    reason="nothing can be mounted here",
)
def test_places() -> None:
    done = given("places", "--cases", "3", "--seed", "127")
    assert done.returncode == 0, done.stdout + done.stderr
    assert all(f"places, {how}" in done.stdout for how in ("full", "read-only", "locked"))
