import os
import signal

import pytest
import torch
from threadpoolctl import threadpool_info

from gcnsl import execution
from gcnsl.errors import ArgumentError
from gcnsl.execution import (
    Interruption,
    choose_device,
    one_thread,
    threads_for,
    torch_threads_for,
)

SIGNALS = [signal.SIGINT, signal.SIGTERM]


def send(number: int) -> None:
    os.kill(os.getpid(), number)


def test_devices(monkeypatch) -> None:
    assert choose_device().type == ("cuda" if torch.cuda.is_available() else "cpu")
    assert choose_device("cpu") == choose_device(torch.device("cpu")) == torch.device("cpu")
    for unknown in ("gpu", "mps", "cpu:x"):
        with pytest.raises(ArgumentError, match=rf"device\('{unknown}'\) must be auto, cpu, cuda or cuda:N"):
            choose_device(unknown)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ArgumentError, match=r"device\('cuda'\) can't be used: .*no CUDA device; use auto or cpu"):
        choose_device("cuda")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert choose_device("cuda:1").index == 1
    with pytest.raises(ArgumentError, match=r"device\('cuda:2'\) must be below cuda:2, or auto"):
        choose_device("cuda:2")


@pytest.fixture
def three_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


def test_little_work_has_one_thread_and_much_work_has_all(three_threads) -> None:
    import sklearn.ensemble  # noqa: F401 - it loads a library for threads of its own

    with threads_for(execution.LARGE - 1):
        assert torch.get_num_threads() == 1
        assert {pool["num_threads"] for pool in threadpool_info()} == {1}
    with threads_for(execution.LARGE):
        assert torch.get_num_threads() == 3


@pytest.mark.parametrize("block", [lambda: threads_for(0), lambda: torch_threads_for(0), one_thread])
def test_everything_is_restored_after_an_error_too(block, three_threads) -> None:
    before = threadpool_info()
    with pytest.raises(KeyError), block():
        raise KeyError
    assert torch.get_num_threads() == execution.allowed_threads() == 3
    assert threadpool_info() == before


def test_much_work_within_little_work_has_all_threads_that_the_caller_allows(three_threads) -> None:
    with threads_for(0):
        assert execution.allowed_threads() == 3
        with torch_threads_for(execution.LARGE):
            assert torch.get_num_threads() == 3
            with threads_for(0):
                assert torch.get_num_threads() == 1
            assert torch.get_num_threads() == 3
        assert torch.get_num_threads() == 1


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
        signal.signal(number, signal.SIG_IGN)
        with Interruption():
            send(number)
    finally:
        signal.signal(number, before)
