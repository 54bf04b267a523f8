"""``torchrun -m gcnsl train``: the same command in several processes, of which the first one leads and prints."""

import os
from typing import NoReturn

import typer

from gcnsl.cli.app import BAD_INPUT, LAUNCHED
from gcnsl.errors import ArgumentError, GcnslError


def refuse(command: str) -> NoReturn:
    """End a command that torchrun can't divide: every process would do all of its work. Only the first one says so."""
    from gcnsl.sharding.process_group import rank

    if rank() == 0:
        raise GcnslError(f"torchrun divides only `gcnsl train` among processes: run `gcnsl {command}` without it")
    raise typer.Exit(BAD_INPUT)


def take_part(context: typer.Context, method: str, device: str) -> str | None:
    """Join the other processes, if ``torchrun`` has started this one.

    Returns:
        The device of this process, if it leads or is alone; ``None`` if it has followed and is done.
    """
    if LAUNCHED not in os.environ:
        return device
    from gcnsl.methods.together import check_divisible, follow, leading
    from gcnsl.sharding.process_group import own_device, rank

    try:
        check_divisible(method)
    except ArgumentError:
        if rank() == 0:
            raise
        raise typer.Exit(BAD_INPUT) from None  # one process says it for all
    if rank() > 0:
        follow(own_device(device))
        return None
    context.with_resource(leading())
    return own_device(device)
