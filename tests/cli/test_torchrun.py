import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from .cases import TRAIN

LONG = ("--method", "gcn-sl-plus", "--set", "epochs=1000000", "--set", "patience=1000000", "--checkpoint-every", "1")
SECONDS = 60


def started(size: int, *arguments: object) -> subprocess.Popen[str]:
    """`gcnsl` in several processes."""
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(size)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    command = [*torchrun, "-m", "gcnsl", *map(str, arguments)]
    return subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)


def rank_of(process: int) -> str:
    variables = Path(f"/proc/{process}/environ").read_text().split("\0")
    return next((value[5:] for value in variables if value.startswith("RANK=")), "")


def test_the_first_process_prints_and_saves(people, gcnsl, tmp_path) -> None:
    with started(2, "train", *people, *TRAIN, "-o", tmp_path / "model", "--json") as command:
        out, err = command.communicate()
    assert command.returncode == 0, err
    report = json.loads(out)
    assert report["epochs"] > 0
    code, _, err = gcnsl("predict", tmp_path / "model", "-o", tmp_path / "predictions.csv")
    assert code == 0, err
    assert not (tmp_path / "model.checkpoint").exists()


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc to find a process by its rank")
def test_a_killed_process_ends_the_command_with_a_line_and_leaves_a_checkpoint(people, tmp_path) -> None:
    with started(2, "train", *people, *LONG, "-o", tmp_path / "model", "--quiet") as command:
        end = time.monotonic() + SECONDS
        while not (tmp_path / "model.checkpoint").exists() and time.monotonic() < end:
            time.sleep(0.1)
        children = Path(f"/proc/{command.pid}/task/{command.pid}/children").read_text().split()
        (killed,) = [int(child) for child in children if rank_of(int(child)) == "1"]
        os.kill(killed, signal.SIGKILL)
        _, err = command.communicate(timeout=SECONDS)
    assert command.returncode != 0
    assert "Error: process 0 of 2 can't go on, because another one has ended" in err
    assert (tmp_path / "model.checkpoint").exists()


@pytest.mark.parametrize("rank", ["0", "1"])
def test_other_commands_are_refused_once(rank: str, gcnsl, people, monkeypatch) -> None:
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "test")
    monkeypatch.setenv("RANK", rank)
    code, out, err = gcnsl("inspect", *people)
    assert (code, out) == (2, "")
    assert ("run `gcnsl inspect` without it" in " ".join(err.split())) == (rank == "0")


@pytest.mark.parametrize("method", ["auto", "sage"])
def test_methods_that_processes_cannot_divide(method: str, gcnsl, people, monkeypatch) -> None:
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "test")
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "0")
    code, _, err = gcnsl("train", *people, "--method", method)
    assert code == 2
    expected = "can't be trained by torchrun: it must be one of mlp, gcn, gcn-sl-cc, gcn-sl-av, gcn-sl-plus"
    assert err.strip() == f"Error: --method {method} {expected}"
    monkeypatch.setenv("RANK", "1")
    assert gcnsl("train", *people, "--method", method) == (2, "", ""), "one process says it for all"
