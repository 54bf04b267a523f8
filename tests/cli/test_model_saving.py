"""After Ctrl-C and in places that cannot be written to: what was trained is kept, and the place is named."""

import errno
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from filelock import FileLock

from gcnsl import NodeClassifier, cli

from .cases import TRAIN

PROGRAM = (sys.executable, "-m", "gcnsl")
SPACE = "No space left on device"


@pytest.fixture
def command(people, tmp_path, monkeypatch):
    """A training whose rescued model would be in the folder ``rescued``."""
    (tmp_path / "rescued").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "rescued"))
    return ("train", *people, *TRAIN, "--quiet", "-o", tmp_path / "model")


@pytest.fixture
def full_disk(monkeypatch):
    """Let nothing be written below some folders, as on a disk without space, until it is called again."""
    fsync, full = os.fsync, []

    def fail(descriptor: int) -> None:
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        if any(path.startswith(str(folder)) for folder in full):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        fsync(descriptor)

    def fill(*folders: Path) -> None:
        full[:] = folders

    monkeypatch.setattr(os, "fsync", fail)
    return fill


pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it looks at /proc")


def auto(command) -> tuple:
    """The same for a short search of the best model."""
    at = command.index("--method")
    return (*command[:at], "--minutes", "0.05", "--quality", "fast", *command[command.index("--quiet") :])


@pytest.mark.parametrize("kind", [tuple, auto])
def test_a_model_without_a_place_is_rescued(gcnsl, command, tmp_path, full_disk, kind) -> None:
    full_disk(f"{tmp_path}/model/")
    code, _, err = gcnsl(*kind(command))
    assert code == 2
    assert f"Error: cannot write {tmp_path / 'model'}: {SPACE}; the model is in " in err
    (rescued,) = tmp_path.glob("rescued/*/model")
    assert err.endswith(f"the model is in {rescued}: move it to where you want it\n")
    assert len(NodeClassifier.load(rescued).predict()) == 90
    assert (tmp_path / "model.checkpoint").exists()
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("kind", [tuple, auto])
def test_without_any_place_the_same_command_saves_what_was_trained(gcnsl, command, tmp_path, full_disk, kind) -> None:
    full_disk(f"{tmp_path}/model/", tmp_path / "rescued")
    code, _, err = gcnsl(*kind(command))
    assert code == 2
    assert err.endswith(f"the run is in {tmp_path / 'model.checkpoint'}, and the same command continues it\n")
    assert not (tmp_path / "model").exists(), "no part of a model is left"
    assert list((tmp_path / "rescued").iterdir()) == []
    full_disk()
    assert gcnsl(*kind(command))[0] == 0
    assert sorted(path.name for path in tmp_path.glob("*model*")) == ["model"]


@pytest.mark.filterwarnings("always")
def test_models_that_cannot_be_written_make_an_ensemble(gcnsl, command, tmp_path, full_disk) -> None:
    full_disk(tmp_path / "model.checkpoint")
    code, _, err = gcnsl(*auto(command))
    assert code == 0
    assert err.count("Warning: cannot write ") == 1
    assert f"{SPACE}; what is in {tmp_path / 'model.checkpoint'} stays, but the rest can't be resumed" in err
    assert len(NodeClassifier.load(tmp_path / "model").leaderboard_) > 3
    assert sorted(path.name for path in tmp_path.glob("*model*")) == ["model"]


def test_a_place_that_cannot_be_written_is_refused_before_training(gcnsl, command, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("gcnsl.estimator.node_classifier.fit", None)
    (tmp_path / "file").write_text("mine")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "notes.txt").write_text("mine")
    refusals = {
        tmp_path / "file": "file is a file: give the name of a folder",
        tmp_path / "file" / "inner": f"cannot write {tmp_path}/file/inner: Not a directory",
        tmp_path / "folder": "folder holds something other than a model: give another folder",
        Path("/proc/model"): "cannot write /proc/model: ",
    }
    for place, refusal in refusals.items():
        code, _, err = gcnsl(*command[:-1], place)
        assert code == 2
        assert refusal in err


def test_a_second_training_with_the_same_output_says_that_it_cannot_be_resumed(gcnsl, command, tmp_path) -> None:
    checkpoint, lock = tmp_path / "model.checkpoint", tmp_path / ".model.checkpoint.lock"
    with FileLock(lock):
        checkpoint.write_text("what another command has reached")
        code, _, err = gcnsl(*command)
    assert (code, err) == (0, f"Note: another command is using {checkpoint}, so this run can't be resumed\n")
    assert checkpoint.read_text() == "what another command has reached"
    assert len(NodeClassifier.load(tmp_path / "model").predict()) == 90
    checkpoint.unlink()
    assert gcnsl(*command)[::2] == (0, "")
    assert not list(tmp_path.glob("*.lock")), "what a killed command has left is no obstacle, and goes"


@pytest.mark.slow
def test_two_trainings_at_once_both_save(command, tmp_path) -> None:
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    runs = [subprocess.Popen([*PROGRAM, *map(str, command)], text=True, **pipes) for _ in range(2)]
    told = [run.communicate()[1] for run in runs]
    assert [run.returncode for run in runs] == [0, 0]
    note = f"Note: another command is using {tmp_path / 'model.checkpoint'}, so this run can't be resumed\n"
    assert set(told) <= {"", note}
    assert len(NodeClassifier.load(tmp_path / "model").predict()) == 90
    assert sorted(path.name for path in tmp_path.glob("*model*")) == ["model"]


@pytest.mark.parametrize("columns", [{}, {"colour": ["red", "blue", "red"], "shape": ["round", "flat", "flat"]}])
@pytest.mark.parametrize("how", [TRAIN, ("--minutes", "0.05", "--quality", "fast")])
def test_tables_without_a_number_go_all_the_way(gcnsl, tmp_path, columns, how) -> None:
    names = [f"n{i}" for i in range(30)]
    nodes = pd.DataFrame(
        {"id": names, **{name: 10 * values for name, values in columns.items()}, "label": [*"abc"] * 10}
    )
    nodes.to_csv(tmp_path / "nodes.csv", index=False)
    pd.DataFrame({"source": names, "target": names[3:] + names[:3]}).to_csv(tmp_path / "edges.csv", index=False)
    tables, model = ("--nodes", tmp_path / "nodes.csv", "--edges", tmp_path / "edges.csv"), tmp_path / "model"
    assert gcnsl("train", *tables, *how, "--quiet", "-o", model)[0] == 0
    assert gcnsl("predict", model, *tables, "--quiet", "-o", tmp_path / "predictions.csv")[0] == 0
    assert gcnsl("report", model, "--quiet", "--seconds", "0.1", "-o", tmp_path / "page.html")[0] == 0
    assert pd.read_csv(tmp_path / "predictions.csv")["id"].tolist() == names


@pytest.fixture
def pressing(monkeypatch):
    """Ctrl-C is pressed in the fourth epoch."""

    def press(epoch) -> str:
        if epoch.number == 4:
            os.kill(os.getpid(), signal.SIGINT)
        return ""

    with monkeypatch.context() as patched:
        patched.setattr("gcnsl.estimator.progress.in_words", press)
        yield


@pytest.mark.usefixtures("pressing")
def test_ctrl_c_saves_even_without_checkpoints(gcnsl, people, tmp_path) -> None:
    command = ("train", *people, *TRAIN, "-o", str(tmp_path / "model"))
    code, out, err = gcnsl(*command)
    assert (code, out) == (cli.INTERRUPTED, "")
    classifier = NodeClassifier.load(tmp_path / "model")
    assert (len(classifier.history_), classifier.history_.stopped) == (4, "interrupted")
    assert err == (
        "Interrupted: saving the best model so far\n"
        f"Interrupted: after epoch 4; {tmp_path / 'model'} is the best model so far, of epoch "
        f"{classifier.history_.best_epoch}. This continues:\n  {shlex.join(['gcnsl', *command])}\n"
    )
    for use in (("predict", tmp_path / "model"), ("explain", tmp_path / "model", "p12")):
        code, _, err = gcnsl(*use)
        assert code == 0
        assert err.startswith("Note: training was interrupted after epoch 4; this is the best model until then")
    code, _, err = gcnsl("train", *people, *TRAIN, "-o", tmp_path / "model", "--set", "epsilon=0.5")
    assert code == cli.BAD_INPUT
    assert "belongs to another run: epsilon is 0.95 there and 0.5 here; delete it to start again" in err
    assert gcnsl(*command)[0] == 0
    assert NodeClassifier.load(tmp_path / "model").history_.stopped == "epochs"
    assert not (tmp_path / "model.checkpoint").exists()
