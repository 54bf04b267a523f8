import signal
import threading

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_info

from gcnsl.errors import ArgumentError
from gcnsl.training import choose_device, seeded
from gcnsl.training.environment import Interruption, one_thread

from .cases import SIGNALS, fit, net, send


def test_devices() -> None:
    assert choose_device().type == ("cuda" if torch.cuda.is_available() else "cpu")
    assert choose_device("cpu") == choose_device(torch.device("cpu")) == torch.device("cpu")
    for unknown in ("gpu", "mps", "cpu:x"):
        with pytest.raises(ArgumentError, match=rf"device\('{unknown}'\) must be auto, cpu, cuda or cuda:N"):
            choose_device(unknown)


def test_a_missing_device_is_named(monkeypatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ArgumentError, match=r"device\('cuda'\) can't be used: .*no CUDA device; use auto or cpu"):
        choose_device("cuda")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert choose_device("cuda:1").index == 1
    with pytest.raises(ArgumentError, match=r"device\('cuda:2'\) must be below cuda:2, or auto"):
        choose_device("cuda:2")


def test_seeded_draws() -> None:
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(1)
    before = torch.get_rng_state()
    for seed in (0, np.int64(0)):
        with seeded(seed):
            assert torch.rand(3).equal(expected)
        assert torch.get_rng_state().equal(before)


def test_one_thread_works_and_then_all_of_them_again() -> None:
    before = torch.get_num_threads()
    pools = [pool["num_threads"] for pool in threadpool_info()]
    with one_thread():
        assert torch.get_num_threads() == 1
        assert {pool["num_threads"] for pool in threadpool_info()} <= {1}
    assert torch.get_num_threads() == before
    assert [pool["num_threads"] for pool in threadpool_info()] == pools


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
