"""Which device to work on, and random numbers of one's own there."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from gcnsl.errors import InputError


def choose_device(device: str | torch.device = "auto") -> torch.device:
    """The device that a name means: ``"cpu"``, ``"cuda"``, ``"cuda:1"``; ``"auto"`` is CUDA if there is any."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
    except (RuntimeError, TypeError):
        chosen = torch.device("meta")
    if chosen.type not in ("cpu", "cuda"):
        raise InputError(f"device({str(device)!r}) must be auto, cpu, cuda or cuda:N")
    if chosen.type == "cuda" and not torch.cuda.is_available():
        raise InputError(f"device({str(device)!r}): torch finds no CUDA device here; use 'auto' or 'cpu'")
    if chosen.type == "cuda" and (chosen.index or 0) >= torch.cuda.device_count():
        found = torch.cuda.device_count()
        raise InputError(
            f"device({str(device)!r}): there are {found} CUDA devices; use one of cuda:0 to cuda:{found - 1}"
        )
    return chosen


@contextmanager
def seeded(seed: int, device: torch.device | str = "cpu") -> Iterator[None]:
    """Draw what torch draws inside from this seed, on the CPU and on ``device``; the caller's generators stay as is."""
    device = torch.device(device)
    on_cuda = device.type == "cuda"
    with torch.random.fork_rng(devices=[device] if on_cuda else []):
        torch.default_generator.manual_seed(seed)  # torch.manual_seed would reach devices that are not ours
        if on_cuda:
            with torch.cuda.device(device):
                torch.cuda.manual_seed(seed)
        yield
