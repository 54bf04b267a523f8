"""Places that can't be written to: whatever was trained is kept, and the error names the place."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gcnsl import NodeClassifier
from gcnsl.files import reserved

from .cases import TRAIN

PROGRAM = (sys.executable, "-m", "gcnsl")


@pytest.fixture
def command(people, tmp_path, monkeypatch):
    """A training whose rescued model would be in the folder ``rescued``."""
    (tmp_path / "rescued").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "rescued"))
    return ("train", *people, *TRAIN, "--quiet", "-o", tmp_path / "model")


@pytest.fixture
def full_disk(monkeypatch):
    """Let nothing be written below some folders, as on a disk without space."""

    def fill(*folders: Path) -> None:
        fsync = os.fsync

        def fail(descriptor: int) -> None:
            path = os.readlink(f"/proc/self/fd/{descriptor}")
            if any(path.startswith(str(folder)) for folder in folders):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            fsync(descriptor)

        monkeypatch.setattr(os, "fsync", fail)

    return fill


pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it looks at /proc")


def test_a_model_without_a_place_is_rescued(gcnsl, command, tmp_path, full_disk) -> None:
    full_disk(tmp_path / ".model.new")
    code, _, err = gcnsl(*command)
    assert code == 2
    assert f"Error: {tmp_path / 'model'} can't be written (No space left on device): free the disk" in err
    (rescued,) = tmp_path.glob("rescued/*/model")
    assert f"the model is in {rescued}: move it" in err
    assert len(NodeClassifier.load(rescued).predict()) == 90
    assert (tmp_path / "model.checkpoint").exists()


def test_without_any_place_the_same_command_saves_what_was_trained(gcnsl, command, tmp_path, full_disk) -> None:
    full_disk(tmp_path / ".model.new", tmp_path / "rescued")
    code, _, err = gcnsl(*command)
    assert code == 2
    assert err.endswith(f"the run is in {tmp_path / 'model.checkpoint'}, and the same command continues it\n")
    assert not list(tmp_path.glob(".model*")), "no part of a model is left"


@pytest.mark.filterwarnings("always")
def test_nothing_at_all_can_be_written(gcnsl, command, tmp_path, full_disk) -> None:
    full_disk(tmp_path)
    code, _, err = gcnsl(*command)
    assert code == 2
    assert "Warning: the run is not saved: " in err
    assert err.endswith("the model is lost\n")
    assert not list(tmp_path.glob("*model*"))


def test_a_place_that_cannot_be_written_is_refused_before_training(gcnsl, command, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("gcnsl.estimator.node_classifier.fit", None)
    (tmp_path / "model").write_text("mine")
    code, _, err = gcnsl(*command[:-1], tmp_path / "model" / "inner")
    assert code == 2
    assert "inner can't be written (" in err


def test_a_second_training_with_the_same_output_is_told_so(command, tmp_path) -> None:
    with reserved(tmp_path / "model"):
        second = subprocess.run([*PROGRAM, *map(str, command)], capture_output=True, text=True, check=False)
    assert second.returncode == 2
    assert second.stderr == (
        f"Error: {tmp_path / 'model'} is being written by another process: wait until it has ended, or give another "
        "place\n"
    )
