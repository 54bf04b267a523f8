"""Run a function in several processes that form a group, as ``torchrun`` would, but started in a moment.

A server that has imported everything is forked for each process. The server itself computes nothing, since torch's
threads do not survive a fork.
"""

import multiprocessing
import os
import socket
import traceback
from collections.abc import Callable
from typing import Any

import torch

import gcnsl.estimator
import gcnsl.methods.together  # noqa: F401 - the server imports it, so that the processes need not
from gcnsl.sharding import process_group

SECONDS = 60
# CUDA, which torch asks for its state in every step, does not survive a fork either.
_context = multiprocessing.get_context("spawn" if torch.cuda.is_available() else "forkserver")
_context.set_forkserver_preload([__name__])


def in_processes(size: int, function: Callable[..., Any], *arguments: Any, lost: int | None = None) -> dict[int, Any]:
    """The results of ``function(*arguments)`` by rank; in the function, ``process_group.joined()`` joins the others.

    The process ``lost`` is one that ends without a result.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ends = {}
    for rank in range(size):
        here, there = _context.Pipe()
        variables = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": size, "MASTER_PORT": port}
        process = _context.Process(target=_work, args=(there, variables, function, arguments), daemon=True)
        process.start()
        ends[rank] = process, here
    results = {}
    for rank, (process, here) in ends.items():
        if rank != lost:
            assert here.poll(SECONDS), f"process {rank} has not answered within {SECONDS} seconds"
            failed, results[rank] = here.recv()
            assert not failed, results[rank]
        process.join()
    return results


def in_group(size: int, function: Callable[..., Any], *arguments: Any) -> list[Any]:
    """The same in processes that have joined already."""
    return list(in_processes(size, _joined, function, *arguments).values())


def _joined(function: Callable[..., Any], *arguments: Any) -> Any:
    with process_group.joined():
        return function(*arguments)


def _work(there: Any, variables: dict[str, int], function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    torch.set_num_threads(1)
    fixed = {"TORCHELASTIC_RUN_ID": "test", "MASTER_ADDR": "127.0.0.1"}
    os.environ.update(fixed | {name: str(value) for name, value in variables.items()})
    try:
        there.send((False, function(*arguments)))
    except BaseException:
        there.send((True, traceback.format_exc()))
