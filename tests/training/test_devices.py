import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_info

from gcnsl.errors import ArgumentError
from gcnsl.training import choose_device, seeded
from gcnsl.training.devices import one_thread


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
