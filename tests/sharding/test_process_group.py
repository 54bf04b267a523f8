import os
import signal
import threading

import pytest
import torch

from gcnsl.sharding import process_group
from gcnsl.sharding.process_group import ProcessLost, any_says, from_leader, launched, own_device, rank, size

from .ranks import in_group, in_processes


def exchange() -> list[object]:
    own = rank()
    parts = torch.full((2, 1), float(own))
    told = from_leader({"a": 1} if own == 0 else None)
    sent = process_group.tensor_from_leader(torch.arange(3) if own == 0 else None)
    if own == 0:
        for other in range(1, size()):
            process_group.hand_out(10 * other, to=other)
    received = 0 if own == 0 else process_group.receive()
    gathered = process_group.gather(parts)
    return [
        gathered.flatten().tolist(),
        process_group.reduce_scatter(gathered * (own + 1)).flatten().tolist(),
        process_group.add_up(torch.tensor([own])).tolist(),
        any_says(own == 1, False),
        told,
        sent.tolist(),
        received,
    ]


def test_what_processes_tell_each_other() -> None:
    expected = [[0.0, 0.0, 1.0, 1.0, 2.0, 2.0], None, [3], [True, False], {"a": 1}, [0, 1, 2]]
    for own, answer in enumerate(in_group(3, exchange)):
        assert answer == [expected[0], [6.0 * own] * 2, *expected[2:], 10 * own]


def lose_one() -> str:
    with process_group.joined():
        process_group.add_up(torch.ones(1))
        if rank() == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        try:
            for _ in range(100):
                process_group.gather(torch.ones(1, 1))
        except ProcessLost as lost:
            return f"told: {lost}"
    return "not told"


def test_a_killed_process_ends_the_others_with_one_line() -> None:
    survivors = in_processes(3, lose_one, lost=1)
    for own, line in survivors.items():
        assert line.startswith(f"told: process {own} of 3 can't go on, because another one has ended")


def test_a_process_that_is_not_started_by_torchrun_is_alone(monkeypatch) -> None:
    monkeypatch.delenv("TORCHELASTIC_RUN_ID", raising=False)
    monkeypatch.setenv("RANK", "3")
    assert (launched(), rank(), size()) == (False, 0, 1)


def test_each_process_of_a_machine_has_its_own_gpu(monkeypatch) -> None:
    monkeypatch.setenv("LOCAL_RANK", "2")
    assert own_device("cpu") == "cpu"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert [own_device(wanted) for wanted in ("auto", "cuda", "cuda:0")] == ["cuda:2", "cuda:2", "cuda:0"]


def test_sigterm_interrupts_until_another_process_has_ended(monkeypatch) -> None:
    ended = threading.Event()
    monkeypatch.setattr(process_group, "_others_ended", ended)
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt), process_group._telling_why():
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is before
    try:
        with process_group._telling_why():
            ended.set()
        signal.raise_signal(signal.SIGTERM)  # while the message is being printed
    finally:
        signal.signal(signal.SIGTERM, before)
