"""The device for training, its random numbers, and the number of threads."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from threadpoolctl import threadpool_limits

from gcnsl.checks import check_device
from gcnsl.errors import ArgumentError


def choose_device(device: str | torch.device = "auto") -> torch.device:
    """The device with this name: ``"cpu"``, ``"cuda"``, ``"cuda:1"``; ``"auto"`` is CUDA if available, else the CPU."""
    if check_device(device) == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
    except (RuntimeError, TypeError):
        chosen = torch.device("meta")
    if chosen.type not in ("cpu", "cuda"):
        raise ArgumentError("device", str(device), "must be auto, cpu, cuda or cuda:N")
    if chosen.type == "cuda" and not torch.cuda.is_available():
        raise ArgumentError("device", str(device), "can't be used: torch finds no CUDA device; use auto or cpu")
    if chosen.type == "cuda" and (chosen.index or 0) >= torch.cuda.device_count():
        raise ArgumentError("device", str(device), f"must be below cuda:{torch.cuda.device_count()}, or auto")
    return chosen


@contextmanager
def seeded(seed: int, device: torch.device | str = "cpu") -> Iterator[None]:
    """Seed torch's generators of the CPU and of ``device`` for this block, and restore their states afterwards."""
    device = torch.device(device)
    on_cuda = device.type == "cuda"
    with torch.random.fork_rng(devices=[device] if on_cuda else []):
        torch.default_generator.manual_seed(int(seed))  # torch.manual_seed would also seed other devices
        if on_cuda:
            with torch.cuda.device(device):
                torch.cuda.manual_seed(int(seed))
        yield


@contextmanager
def one_thread() -> Iterator[None]:
    """Let one thread do all the work: that of NumPy and SciPy, and torch's own linear algebra."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        torch.set_num_threads(threads)
