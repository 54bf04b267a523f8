import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from gcnsl import NodeClassifier
from gcnsl.selection import tournament

from ..selection.cases import make_quick

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
        "each judged by models that had not learned from it",
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
def test_the_same_as_json(gcnsl, people, frames) -> None:
    code, out, err = gcnsl("train", *people, *FAST, "--json", "--metric", "roc-auc", "--keep-validation", "--runs", 2)
    report = json.loads(out)
    assert (code, err) == (0, "")
    assert (report["method"], report["saved"]) == ("auto", None)
    first = report["leaderboard"][0]
    assert first["metric"] == "roc-auc"
    assert first["test"] == pytest.approx(report["test"]["metrics"]["roc-auc"])
    assert report["runs"][0] == report["test"]["metrics"]["roc-auc"]
    assert len(report["runs"]) == 2
    assert "validation nodes, which no model has learned from" in report["chosen_by"]
    assert report["options"] == {"quality": "fast", "metric": "roc-auc", "keep_validation": True}


@pytest.mark.usefixtures("quick")
def test_several_runs_show_the_spread_and_keep_the_first_model(gcnsl, people, tmp_path) -> None:
    code, out, err = gcnsl("train", *people, *FAST, "--runs", 2, "-o", tmp_path / "model")
    assert (code, err) == (0, "")
    assert "test accuracy on 2 splits" in out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["edges.csv", "model", "nodes.csv"]
    gcnsl("train", *people, *FAST, "-o", tmp_path / "first")
    probabilities = [NodeClassifier.load(tmp_path / name).predict_proba() for name in ("model", "first")]
    assert np.array_equal(*probabilities)


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
    fit, count = tournament.FoldFitter.__call__, iter(range(100))

    def interrupted_after_six(fitter, job):
        if next(count) == 6:
            os.kill(os.getpid(), signal.SIGTERM)
        return fit(fitter, job)

    monkeypatch.setattr(tournament.FoldFitter, "__call__", interrupted_after_six)
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
