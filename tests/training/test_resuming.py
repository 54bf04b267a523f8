"""Runs that are killed or interrupted, and resumed."""

import os
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from gcnsl import InputError
from gcnsl.errors import Interrupted
from gcnsl.training import Checkpoint, History, TrainingSettings, seeded
from gcnsl.training.state import CheckpointWarning, RunState

from . import cases
from .cases import MASKS, SIGNALS, Net, StopError, fit, net, same_weights, send, slow_run, stop_at

SETTINGS = [
    TrainingSettings(epochs=25),
    TrainingSettings(epochs=25, optimizer="sgd", lr=0.5, monitor="accuracy"),
    TrainingSettings(epochs=40, patience=6, plateau_factor=0.5, plateau_patience=2, lr=0.1),
    TrainingSettings(epochs=25, evaluate_every=4, plateau_factor=0.5, plateau_patience=2),
]
RARELY = TrainingSettings(epochs=20, evaluate_every=3)
MOMENTS = st.tuples(st.integers(1, 40), st.sampled_from(["before", "after", "backward"]), st.sampled_from(SIGNALS))


class Pressing(Net):
    """Sends a signal to itself at some point of one of its passes, of which each epoch has two."""

    def __init__(self, at: int, point: str, number: int) -> None:
        super().__init__()
        self.at, self.point, self.number, self.passes = at, point, number, 0

    def forward(self, x):
        self.passes += 1
        now = self.passes == self.at
        if now and self.point == "before":
            send(self.number)
        out = super().forward(x)
        if now and self.point == "after":
            send(self.number)
        if now and self.point == "backward" and self.training:
            out.register_hook(lambda _: send(self.number))
        return out


def pressing(at: int, point: str = "before", number: int = signal.SIGINT) -> Pressing:
    with seeded(0):
        return Pressing(at, point, number)


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "run.safetensors"


def assert_same(one: tuple[nn.Module, History], other: tuple[nn.Module, History]) -> None:
    """The same weights, and the same histories but for the clock."""
    assert same_weights(one[0], other[0])
    first, second = ({**history.to_dict(), "seconds": 0} for _, history in (one, other))
    assert first == second


def run(**options) -> tuple[Net, History]:
    model = net()
    return model, fit(model, **options)


def test_a_killed_run_ends_with_the_bits_of_an_undisturbed_one(path) -> None:
    undisturbed = slow_run(None)
    command = [sys.executable, cases.__file__, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for _ in range(10):
            process.stdout.readline()
        os.kill(process.pid, signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    seen = []
    assert_same(slow_run(path, seen.append), undisturbed)
    assert seen[0].number > 9, "it went on from a checkpoint"
    assert_same(slow_run(path, stop_at(0)), undisturbed)  # a finished run is kept until its caller removes it


@pytest.mark.parametrize("settings", SETTINGS)
def test_every_part_of_the_state_is_resumed(path, settings) -> None:
    undisturbed, seen = run(settings=settings), []
    for stop in (3, 5, len(undisturbed[1]) - 2):
        with pytest.raises(StopError):
            run(
                settings=settings,
                checkpoint=Checkpoint(path, every=1, identity={"runs": np.int64(3)}),
                on_epoch=lambda epoch, stop=stop: (seen.append(epoch), stop_at(stop)(epoch)),
            )
    assert_same(run(settings=settings, checkpoint=Checkpoint(path, identity={"runs": 3})), undisturbed)
    seconds = [epoch.seconds for epoch in seen]
    assert [epoch.number for epoch in seen] == list(range(1, len(seen) + 1))
    assert seconds == sorted(seconds), "those of all parts are counted"


@settings(max_examples=40)
@given(st.sampled_from([TrainingSettings(epochs=20), RARELY]), st.lists(MOMENTS, min_size=1, max_size=3))
def test_a_run_interrupted_anywhere_ends_with_the_bits_of_an_undisturbed_one(settings, moments) -> None:
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = Checkpoint(Path(folder) / "run")
        for moment in moments:
            with suppress(Interrupted):  # fewer passes may be left than that
                fit(pressing(*moment), checkpoint=checkpoint, settings=settings)
        resumed = run(checkpoint=checkpoint, settings=settings)
    assert_same(resumed, run(settings=settings))


def test_a_signal_waits_until_the_epoch_is_complete(path, monkeypatch) -> None:
    end_epoch = RunState.end_epoch

    def disturbed(self, *arguments) -> None:
        send()
        end_epoch(self, *arguments)

    with monkeypatch.context() as patched:
        patched.setattr(RunState, "end_epoch", disturbed)
        for number in (1, 2, 3):
            with pytest.raises(Interrupted, match=f"after epoch {number};"):
                run(checkpoint=Checkpoint(path))
    with pytest.raises(Interrupted, match="after epoch 20;"):
        run(checkpoint=Checkpoint(path), on_epoch=lambda epoch: epoch.remaining or send())
    assert_same(run(checkpoint=Checkpoint(path), on_epoch=stop_at(0)), run())


def test_the_message_says_what_was_saved(path) -> None:
    with pytest.raises(Interrupted, match=rf"^interrupted after epoch 4; the run is saved in {path}: the same"):
        fit(pressing(7), checkpoint=Checkpoint(path))
    with pytest.raises(Interrupted, match="after epoch 4; nothing was saved, because there is no checkpoint"):
        fit(pressing(8))
    with pytest.raises(Interrupted, match="after epoch 1; nothing was saved"):
        fit(pressing(1))
    with pytest.raises(Interrupted, match="after epoch 1; "):
        fit(net(), on_epoch=lambda _: send())


def test_the_model_is_left_with_the_best_weights_so_far() -> None:
    model, best = pressing(13), net()
    with pytest.raises(Interrupted) as interruption:
        fit(model)
    history = interruption.value.so_far
    assert (len(history), history.stopped) == (7, "interrupted")
    with pytest.raises(Interrupted):
        fit(best, on_epoch=lambda epoch: send() if epoch.number == history.best_epoch else None)
    assert same_weights(model, best)
    assert not model.training


def test_a_run_that_cannot_be_saved_goes_on_and_is_saved_later(path, monkeypatch) -> None:
    fsync, calls = os.fsync, []

    def full_at_first(descriptor) -> None:
        calls.append(descriptor)
        if len(calls) < 3:
            raise OSError("no space left")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", full_at_first)
    with pytest.warns(CheckpointWarning, match=r"the run is not saved: cannot write .*run.safetensors: no space"):
        unsaved = run(checkpoint=Checkpoint(path, every=4))
    assert list(path.parent.iterdir()) == [path]
    assert_same(unsaved, run())
    assert_same(run(checkpoint=Checkpoint(path, every=4), on_epoch=stop_at(0)), unsaved)


def test_a_checkpoint_of_another_run_is_refused(path) -> None:
    with pytest.raises(StopError):
        run(checkpoint=Checkpoint(path, every=5, identity={"epsilon": 0.9}), on_epoch=stop_at(7))
    before = path.read_bytes()
    for options, message in (
        ({"settings": TrainingSettings(epochs=20, lr=0.5)}, "lr is 0.01 there and 0.5 here"),
        ({"seed": 1}, "seed is 0 there and 1 here"),
        ({"train_mask": MASKS["val_mask"]}, "labels and masks is '[0-9a-f]{16}' there and"),
        ({"identity": {"epsilon": 0.8}}, "epsilon is 0.9 there and 0.8 here"),
        ({"identity": {}}, "epsilon is 0.9 there and None here"),
        ({"model": nn.Linear(12, 3)}, "weights is .* there and .* here"),
    ):
        checkpoint = Checkpoint(path, identity=options.pop("identity", {"epsilon": 0.9}))
        with pytest.raises(InputError, match=rf"{path} belongs to another run: {message}.*; delete it to start again"):
            fit(options.pop("model", net()), checkpoint=checkpoint, **options)
        assert path.read_bytes() == before


def test_what_is_no_checkpoint_is_refused(path) -> None:
    checkpoint = Checkpoint(path)
    path.mkdir()
    with pytest.raises(InputError, match=f"checkpoint {path} can't be read"):
        fit(net(), checkpoint=checkpoint)
    path.rmdir()
    for foreign in (b"", b"not a checkpoint at all", bytes(100)):
        path.write_bytes(foreign)
        with pytest.raises(InputError, match=f"checkpoint {path} can't be read .*; delete it to start again"):
            fit(net(), checkpoint=checkpoint)
    path.write_bytes(safetensors.torch.save({"weight": torch.ones(3)}))
    with pytest.raises(InputError, match="is not a checkpoint that this version can continue"):
        fit(net(), checkpoint=checkpoint)


@pytest.fixture(scope="module")
def checkpoint_file(tmp_path_factory) -> tuple[Path, tuple]:
    path = tmp_path_factory.mktemp("bytes") / "run.safetensors"
    with pytest.raises(StopError):
        fit(net(), checkpoint=Checkpoint(path, every=5), on_epoch=stop_at(7))
    return path, next_epoch(path)


def next_epoch(path) -> tuple:
    """The first epoch after the checkpoint, or the refusal to go on."""
    seen = []
    try:
        fit(net(), checkpoint=Checkpoint(path), on_epoch=lambda epoch: (seen.append(epoch), stop_at(6)(epoch)))
    except InputError as error:
        return "refused", str(path) in str(error)
    except StopError:
        return seen[0].number, seen[0].train_loss, seen[0].val_loss
    return ("finished",)


@settings(max_examples=60)
@given(st.floats(0, 1, exclude_max=True), st.integers(0, 255))
def test_a_changed_byte_or_a_lost_end_is_noticed_or_changes_nothing(checkpoint_file, where, change) -> None:
    path, undisturbed = checkpoint_file
    whole = path.read_bytes()
    place = int(where * len(whole))
    damaged = bytearray(whole)
    damaged[place] ^= change
    path.write_bytes(damaged if change else whole[:place])
    outcome = next_epoch(path)
    path.write_bytes(whole)
    assert outcome == ("refused", True) or (change and outcome == undisturbed)
