import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gcnsl import NodeClassifier
from gcnsl.runs.jobs import Trainer

from ..auto.cases import make_quick

FAST = ("--quality", "fast", "--minutes", "5")


@pytest.fixture
def quick(monkeypatch):
    make_quick(monkeypatch)


@pytest.mark.usefixtures("quick")
def test_the_best_is_found_shown_saved_and_used(gcnsl, people, tmp_path) -> None:
    model = tmp_path / "model"
    code, out, err = gcnsl("train", *people, *FAST, "-o", model, "--plot", tmp_path / "quality.png")
    assert (code, err) == (0, "")
    for word in (
        "Leaderboard, accuracy",
        "logistic regression",
        "majority class",
        "for comparison",
        "verdict",
        "test accuracy",
        "each predicted by models that had not learned from it",
        "recall",
        f"gcnsl predict {model} -o predictions.csv",
    ):
        assert word in out
    assert not (tmp_path / "model.checkpoint").exists()
    assert (tmp_path / "quality.png").exists()
    assert gcnsl("predict", model, *people, "--evaluate")[0] == 0
    code, out, err = gcnsl("explain", model, "p12")
    assert (code, err) == (0, "")
    assert "Probabilities: " in out


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("option", [("--single",), ("--distil", "mlp")])
def test_one_model_instead(gcnsl, people, tmp_path, option) -> None:
    code, out, err = gcnsl("train", *people, *FAST, *option, "-o", tmp_path / "model")
    assert (code, err) == (0, "")
    assert "Leaderboard" in out
    assert NodeClassifier.load(tmp_path / "model").method != "auto"


@pytest.mark.usefixtures("quick")
def test_an_interruption_saves_the_best_so_far_and_the_same_command_goes_on(
    gcnsl, people, tmp_path, monkeypatch
) -> None:
    fit, count = Trainer.__call__, iter(range(100))

    def interrupted_after_six(fitter, job):
        if next(count) == 6:
            os.kill(os.getpid(), signal.SIGTERM)
        return fit(fitter, job)

    monkeypatch.setattr(Trainer, "__call__", interrupted_after_six)
    command = ("train", *people, *FAST, "-o", tmp_path / "model")
    code, _, err = gcnsl(*command)
    assert code == 130
    assert "after 6 models; " in err
    assert "This continues:" in err
    assert NodeClassifier.load(tmp_path / "model").history_.stopped == "interrupted"
    assert "Note: training was interrupted; this is the best" in gcnsl("predict", tmp_path / "model")[2]
    code, _, err = gcnsl(*command)
    assert (code, err) == (0, f"Continuing: from {tmp_path / 'model.checkpoint'}\n")
    assert NodeClassifier.load(tmp_path / "model").history_.stopped == "complete"


def wait_until(holds, process) -> None:
    deadline = time.monotonic() + 240
    while not holds() and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("when", "numbers"),
    [
        ("loading", [signal.SIGINT]),
        ("reading", [signal.SIGINT] * 2),
        pytest.param("starting", [signal.SIGTERM], marks=pytest.mark.slow),
        ("working", [signal.SIGINT] * 3),
        pytest.param("saving", [signal.SIGTERM] * 2, marks=pytest.mark.slow),
    ],
)
def test_whenever_ctrl_c_is_pressed_it_ends_with_one_line(people, tmp_path, when, numbers) -> None:
    """As a terminal does it: the whole group of processes gets the signals."""
    folder, model = tmp_path / "temporary", tmp_path / "model"
    folder.mkdir()
    journal = tmp_path / "model.checkpoint"
    command = [sys.executable, "-m", "gcnsl", "train", *people, "--quality", "fast", "-o", str(model)]
    process = subprocess.Popen(
        [*command, "--minutes", "0.01" if when == "saving" else "10"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(folder)},
        start_new_session=True,
    )
    reached = {
        "loading": lambda: True,
        "reading": lambda: "torch" in Path(f"/proc/{process.pid}/maps").read_text(),
        "starting": lambda: any(folder.glob("gcnsl-*")),
        "working": lambda: any(journal.glob("*.safetensors")),
        "saving": lambda: any(tmp_path.glob(".model*new*")) or model.exists(),
    }[when]
    if when == "loading":
        time.sleep(0.2)
    wait_until(reached, process)
    for number in numbers:
        os.killpg(process.pid, number)
        time.sleep(0.05)
    out, err = process.communicate(timeout=120)
    assert "Traceback" not in err
    assert "Exception ignored" not in err
    if when == "saving" and process.returncode == 0:  # it was too late
        assert "Leaderboard" in out
    else:
        assert process.returncode == 130, err
        told = [line for line in err.splitlines() if line.startswith("Interrupted: ")]
        assert len([line for line in told if "saving" not in line]) == 1
        kept = [words for words in ("is the best model so far", "is the finished model") if words in told[-1]]
        assert model.exists() == bool(kept)
        assert kept or when != "saving"
    assert [path.name for path in folder.iterdir() if not path.name.startswith("torch")] == []
    assert not list(tmp_path.glob(".*.lock"))


@pytest.mark.slow
def test_killed_with_real_processes_it_goes_on_and_leaves_none_behind(people, tmp_path) -> None:
    command = [sys.executable, "-m", "gcnsl", "train", *people, "--quality", "fast", "-o", str(tmp_path / "model")]
    journal = tmp_path / "model.checkpoint"
    process = subprocess.Popen([*command, "--minutes", "10"], stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 240
    while not list(journal.glob("*.safetensors")) and time.monotonic() < deadline:
        time.sleep(0.2)
    process.kill()
    process.wait()
    finished = {path.name for path in journal.glob("*.safetensors")}
    assert finished
    done = subprocess.run([*command, "--minutes", "0.001", "--json"], capture_output=True, text=True, check=True)
    assert "Continuing" in done.stderr
    table = json.loads(done.stdout)["leaderboard"]
    assert sum(row["train_seconds"] > 0 for row in table if row["model"] != "ensemble") >= 1
    assert not journal.exists()
