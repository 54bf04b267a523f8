import os
import signal
import tempfile
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcnsl.errors import Interrupted
from gcnsl.training import Checkpoint, TrainingSettings, seeded
from gcnsl.training.interruption import Interruption
from gcnsl.training.state import RunState

from .cases import Net, fit, net, same_weights, stop_at

SIGNALS = [signal.SIGINT, signal.SIGTERM]
RARELY = TrainingSettings(epochs=20, evaluate_every=3)
POINTS = ["before", "after", "backward"]


def send(number: int = signal.SIGINT) -> None:
    os.kill(os.getpid(), number)


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
def path(tmp_path):
    return tmp_path / "run.safetensors"


@pytest.fixture(scope="module")
def undisturbed():
    model = net()
    return model, fit(model)


@pytest.fixture(scope="module")
def rarely_evaluated():
    model = net()
    return model, fit(model, settings=RARELY)


def without_seconds(history):
    return {**history.to_dict(), "seconds": 0}


@given(st.lists(st.integers(1, 40), min_size=1, max_size=3), st.data())
def test_a_run_interrupted_anywhere_ends_with_the_bits_of_an_undisturbed_one(undisturbed, passes, data) -> None:
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = Checkpoint(Path(folder) / "run")
        for at in passes:
            point, number = data.draw(st.tuples(st.sampled_from(POINTS), st.sampled_from(SIGNALS)))
            with suppress(Interrupted):  # fewer passes may be left than that
                fit(pressing(at, point, number), checkpoint=checkpoint)
        resumed = net()
        history = fit(resumed, checkpoint=checkpoint)
    model, expected = undisturbed
    assert same_weights(model, resumed)
    assert without_seconds(history) == without_seconds(expected)


@given(st.lists(st.tuples(st.integers(1, 27), st.sampled_from(POINTS)), min_size=1, max_size=3))
def test_so_does_one_that_is_not_evaluated_in_every_epoch(rarely_evaluated, moments) -> None:
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = Checkpoint(Path(folder) / "run")
        for at, point in moments:
            with suppress(Interrupted):
                fit(pressing(at, point), checkpoint=checkpoint, settings=RARELY)
        resumed = net()
        history = fit(resumed, checkpoint=checkpoint, settings=RARELY)
    model, expected = rarely_evaluated
    assert same_weights(model, resumed)
    assert without_seconds(history) == without_seconds(expected)


@pytest.mark.parametrize("method", ["finish_step", "keep_best"])
def test_a_signal_waits_until_a_change_of_the_state_is_complete(path, undisturbed, monkeypatch, method) -> None:
    change, completed = getattr(RunState, method), []

    def disturbed(self, *arguments) -> None:
        send()
        change(self, *arguments)
        completed.append(True)

    with monkeypatch.context() as patched:
        patched.setattr(RunState, method, disturbed)
        for _ in range(3):
            with pytest.raises(Interrupted):
                fit(net(), checkpoint=Checkpoint(path))
    assert len(completed) == 3
    resumed = net()
    fit(resumed, checkpoint=Checkpoint(path))
    assert same_weights(undisturbed[0], resumed)


def test_the_message_says_what_was_saved(path) -> None:
    with pytest.raises(Interrupted, match=rf"^interrupted after epoch 3; the run is saved in {path}: the same"):
        fit(pressing(7), checkpoint=Checkpoint(path))
    with pytest.raises(Interrupted, match="after epoch 3; nothing was saved, because there is no checkpoint"):
        fit(pressing(8))
    with pytest.raises(Interrupted, match="in the first epoch; nothing was saved"):
        fit(pressing(1))
    with pytest.raises(Interrupted, match="after epoch 1; "):
        fit(net(), on_epoch=lambda _: send())


def test_the_model_is_left_with_the_best_weights_so_far() -> None:
    model, best = pressing(14), net()
    with pytest.raises(Interrupted) as interruption:
        fit(model)
    history = interruption.value.so_far
    assert (len(history), history.stopped) == (6, "interrupted")
    with pytest.raises(Interrupted):
        fit(best, on_epoch=lambda epoch: send() if epoch.number == history.best_epoch else None)
    assert same_weights(model, best)
    assert not model.training


def test_a_second_signal_does_not_disturb_the_saving(path, undisturbed, monkeypatch) -> None:
    save = Checkpoint.save

    def disturbed(*arguments) -> None:
        send(signal.SIGTERM)
        save(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(Checkpoint, "save", disturbed)
        with pytest.raises(Interrupted):
            fit(pressing(8), checkpoint=Checkpoint(path))
    resumed = net()
    fit(resumed, checkpoint=Checkpoint(path), on_epoch=stop_at(1))
    assert same_weights(undisturbed[0], resumed)


def test_in_the_last_epoch_an_interruption_still_resumes_to_the_end(path, undisturbed) -> None:
    with pytest.raises(Interrupted):
        fit(net(), checkpoint=Checkpoint(path), on_epoch=lambda epoch: epoch.remaining or send())
    resumed = net()
    assert len(fit(resumed, checkpoint=Checkpoint(path), on_epoch=stop_at(0))) == 20
    assert same_weights(undisturbed[0], resumed)


def test_an_interruption_is_no_error_that_a_search_would_swallow() -> None:
    assert not issubclass(Interrupted, Exception)


@pytest.mark.parametrize("number", SIGNALS)
def test_handlers_of_the_program_are_called_and_restored(number) -> None:
    received = []

    def handler(got, _) -> None:
        received.append(got)

    before = signal.signal(number, handler)
    try:
        with Interruption() as interruption:
            send(number)
            assert received == [number]
            with interruption.whole():
                send(number)
                assert received == [number]
            assert received == [number, number]
        assert signal.getsignal(number) is handler
    finally:
        signal.signal(number, before)


def test_signals_that_are_ignored_stay_ignored() -> None:
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with Interruption():
            send(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)


def test_the_usual_handlers_are_restored() -> None:
    with pytest.raises(KeyboardInterrupt), Interruption():
        send(signal.SIGTERM)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_other_threads_train_without_handlers() -> None:
    finished = []
    thread = threading.Thread(target=lambda: finished.append(fit(net())))
    thread.start()
    thread.join()
    assert len(finished) == 1
