import os
import signal
import threading

import pytest

from gcnsl.errors import Interrupted
from gcnsl.training import Checkpoint, seeded
from gcnsl.training.interruption import held_back

from .cases import Net, fit, net, same_weights, stop_at


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.safetensors"


def test_ctrl_c_saves_at_the_end_of_the_epoch_and_says_how_to_continue(path) -> None:
    class Pressing(Net):
        """Presses Ctrl-C in the midst of the fourth epoch's step."""

        steps = 0

        def forward(self, x):
            self.steps += self.training
            if self.training and self.steps == 4:
                os.kill(os.getpid(), signal.SIGINT)
            return super().forward(x)

    with seeded(0):
        pressing = Pressing()
    with pytest.raises(
        Interrupted,
        match=rf"after epoch 4, which is saved in {path}; run the same again",
    ):
        fit(pressing, checkpoint=Checkpoint(path))
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    seen = []
    resumed, undisturbed = net(), net()
    fit(resumed, checkpoint=Checkpoint(path), on_epoch=seen.append)
    fit(undisturbed)
    assert seen[0].number == 5
    assert same_weights(undisturbed, resumed)


def test_ctrl_c_without_a_checkpoint_says_that_nothing_is_saved() -> None:
    with pytest.raises(Interrupted, match="after epoch 1; nothing was saved, because there is no checkpoint"):
        fit(net(), on_epoch=lambda _: os.kill(os.getpid(), signal.SIGINT))


def test_ctrl_c_twice_interrupts_at_once(path) -> None:
    class Hanging(Net):
        def forward(self, x):
            for _ in range(2):
                os.kill(os.getpid(), signal.SIGINT)
            raise AssertionError("not at once")

    with pytest.raises(KeyboardInterrupt) as caught:
        fit(Hanging(), checkpoint=Checkpoint(path))
    assert not isinstance(caught.value, Interrupted)
    assert not path.exists()


def test_an_interruption_is_no_error_that_a_search_would_swallow() -> None:
    assert not issubclass(Interrupted, Exception)


def test_in_the_last_epoch_an_interruption_still_resumes_to_the_end(path) -> None:
    with pytest.raises(Interrupted):
        fit(net(), checkpoint=Checkpoint(path), on_epoch=lambda e: e.remaining or os.kill(os.getpid(), signal.SIGINT))
    resumed, undisturbed = net(), net()
    assert len(fit(resumed, checkpoint=Checkpoint(path), on_epoch=stop_at(0))) == 20
    fit(undisturbed)
    assert same_weights(undisturbed, resumed)


def test_other_threads_and_other_handlers_are_left_alone() -> None:
    def handler(*_) -> None:
        raise AssertionError

    signal.signal(signal.SIGINT, handler)
    try:
        fit(net(), on_epoch=lambda _: pytest.fail("replaced") if signal.getsignal(signal.SIGINT) != handler else None)
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    finished = []
    thread = threading.Thread(target=lambda: finished.append(fit(net())))
    thread.start()
    thread.join()
    assert len(finished) == 1


def test_held_back_tells_whether_it_was_pressed() -> None:
    with held_back() as pressed:
        assert not pressed()
        os.kill(os.getpid(), signal.SIGINT)
        assert pressed()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
