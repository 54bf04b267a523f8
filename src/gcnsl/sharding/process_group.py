"""The processes that ``torchrun`` has started, and what they tell each other.

All of them make the same calls in the same order. Tensors on a CPU travel by gloo, those on a GPU by NCCL.
"""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from types import FrameType
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from gcnsl.errors import GcnslError
from gcnsl.memory import give_memory_back

PATIENCE = timedelta(minutes=30)
"""How long a process waits for another that is alive: the first one reads and prepares the graph for all."""
_others_ended = threading.Event()
_gather = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor  # the older name is deprecated
_reduce_scatter = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor


class ProcessLost(GcnslError):  # noqa: N818 - it says what happened
    """Another process of the group has ended, so that this one can't go on."""


def launched() -> bool:
    """Whether ``torchrun`` has started this process."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def rank() -> int:
    """The number of this process, from 0; the first one leads. 0 if there is only one."""
    return int(os.environ["RANK"]) if launched() else 0


def size() -> int:
    """The number of processes."""
    return int(os.environ["WORLD_SIZE"]) if launched() else 1


def own_device(wanted: str) -> str:
    """The device of this process: if GPUs are wanted and there, the one with its number on this machine."""
    if wanted == "cuda" or (wanted == "auto" and torch.cuda.is_available()):
        return f"cuda:{os.environ['LOCAL_RANK']}"
    return wanted


def is_joined() -> bool:
    """Whether this process is a member of the group."""
    return dist.is_initialized()


@contextmanager
def joined() -> Iterator[None]:
    """Be a member of the group in this block."""
    give_memory_back()
    with _telling_why():
        with _others_alive():
            dist.init_process_group("cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo", timeout=PATIENCE)
        try:
            yield
        finally:
            dist.destroy_process_group()


def gather(part: Tensor) -> Tensor:
    """The parts of all processes, one after the other (size·k × w); each part has the same shape (k × w)."""
    parts = part.new_empty(size() * len(part), *part.shape[1:])
    with _others_alive():
        _gather(parts, part.contiguous())
    return parts


def reduce_scatter(parts: Tensor) -> Tensor:
    """The inverse of :func:`gather` for gradients: the sum over all processes of the part that belongs to this one."""
    own = parts.new_empty(len(parts) // size(), *parts.shape[1:])
    with _others_alive():
        _reduce_scatter(own, parts.contiguous())
    return own


def add_up(values: Tensor) -> Tensor:
    """The sum over all processes, in place."""
    with _others_alive():
        dist.all_reduce(values)
    return values


def any_says(*flags: bool) -> list[bool]:
    """For each flag, whether some process has set it: all processes then decide alike."""
    return [count > 0 for count in add_up(torch.tensor(flags, dtype=torch.int32)).tolist()]


def from_leader(value: Any = None) -> Any:
    """What the first process gives, in all processes. Tensors should be small, or go by :func:`tensor_from_leader`."""
    box = [value]
    with _others_alive():
        dist.broadcast_object_list(box, src=0)
    return box[0]


def tensor_from_leader(tensor: Tensor | None = None) -> Tensor:
    """A tensor on the CPU that the first process gives, in all processes."""
    shape, dtype = from_leader(None if tensor is None else (tensor.shape, tensor.dtype))
    sent = torch.empty(shape, dtype=dtype) if tensor is None else tensor.contiguous()
    with _others_alive():
        dist.broadcast(sent, src=0)
    return sent


def hand_out(value: Any, to: int) -> None:
    """Give a value to one process, which calls :func:`receive`."""
    with _others_alive():
        dist.send_object_list([value], dst=to)


def receive() -> Any:
    """What the first process hands out to this one."""
    box = [None]
    with _others_alive():
        dist.recv_object_list(box, src=0)
    return box[0]


@contextmanager
def _telling_why() -> Iterator[None]:
    """Ignore SIGTERM once another process has ended: torchrun sends it to all then, and this one has a line to print.

    Until then, SIGTERM raises ``KeyboardInterrupt``. torchrun kills a process that is still there after 30 seconds.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        if not _others_ended.is_set():
            signal.signal(signal.SIGTERM, before)


def _terminate(number: int, frame: FrameType | None) -> None:
    if not _others_ended.is_set():
        signal.default_int_handler(number, frame)


@contextmanager
def _others_alive() -> Iterator[None]:
    """Say in one line that another process has ended, whatever the words of torch are."""
    try:
        yield
    except (RuntimeError, dist.DistBackendError) as error:
        _others_ended.set()
        raise ProcessLost(
            f"process {rank()} of {size()} can't go on, because another one has ended: its own message, if it was not "
            "killed, says why. The same command continues from the last checkpoint, if there is one"
        ) from error
