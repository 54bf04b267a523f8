"""Which nodes belong to which process, and how the rows of all nodes are put together.

A model sees the rows of its own nodes only. Code that needs those of other nodes gets them here. In a single process,
a function that puts rows together returns them as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from gcnsl.errors import InputError
from gcnsl.sharding import process_group

LARGEST_GATHERED, LEAST_COLUMNS = 1 << 22, 16
"""The number of entries up to which rows of all nodes are gathered as a whole, and the fewest columns otherwise."""


@dataclass(frozen=True)
class NodeRows:
    """The division of n rows among processes: ``chunk`` for each, fewer or none for the last.

    Attributes:
        n: Number of rows of all processes.
        size: Number of processes.
        rank: The process whose rows are ``own``.
        chunk: The largest number of rows that a process has.
    """

    n: int
    size: int
    rank: int
    chunk: int

    @classmethod
    def of(cls, n: int, size: int, rank: int) -> NodeRows:
        """The most even division."""
        return cls(n, size, rank, -(-n // size))

    @property
    def own(self) -> slice:
        """The rows of this process."""
        return slice(min(self.rank * self.chunk, self.n), min((self.rank + 1) * self.chunk, self.n))

    @property
    def count(self) -> int:
        """The number of these rows."""
        return len(range(self.n)[self.own])

    def times(self, repeats: int) -> NodeRows:
        """The division if each of these rows stands for ``repeats`` rows, which stay together."""
        return NodeRows(self.n * repeats, self.size, self.rank, self.chunk * repeats)

    def by_process(self, columns: int) -> Tensor:
        """The column numbers of a matrix, ordered by process, if each block of n columns stands for the nodes.

        In this order, the columns of a process are ``times(columns / n).own``.
        """
        blocks = torch.arange(columns).view(-1, self.n)
        return torch.cat([part.flatten() for part in torch.split(blocks, self.chunk, dim=1)])


_current: NodeRows | None = None  # not a ContextVar: the backward pass of a GPU runs in threads that don't have it


@contextmanager
def divided(n: int) -> Iterator[NodeRows]:
    """Divide n nodes among the processes in this block.

    Raises:
        InputError: If a process would have no nodes.
    """
    global _current  # noqa: PLW0603
    rows = NodeRows.of(n, process_group.size(), process_group.rank())
    if rows.chunk * (rows.size - 1) >= n:
        raise InputError(f"the graph has {n} nodes, too few for {rows.size} processes: start fewer of them")
    _current = rows
    try:
        yield rows
    finally:
        _current = None


def node_rows() -> NodeRows | None:
    """How the nodes are divided; ``None`` in a single process, which has all of them."""
    return _current


def number_of_nodes(rows: Tensor) -> int:
    """The number of nodes of all processes, given a row for each node of this one."""
    return len(rows) if _current is None else _current.n


def gathered(rows: Tensor, division: NodeRows | None = None) -> Tensor:
    """The rows of all processes, from those of this one (k × w, the same number for each of its nodes).

    Each process computes a part of the loss from them, so that the derivative is a sum over all processes.
    ``division`` says how the rows are divided, if not as the nodes are.
    """
    if _current is None:
        return rows
    division = division or _current.times(len(rows) // _current.count)
    result: Tensor = _Gathered.apply(rows, division)  # type: ignore[no-untyped-call]
    return result


def by_columns(function: Callable[[Tensor], Tensor], rows: Tensor) -> Tensor:
    """Apply a function, which gathers the rows of this process (k × w), to some of their columns at a time.

    In a large graph, the rows of all nodes with all columns would take more memory than everything else.
    """
    if _current is None:
        return function(rows)
    at_once = max(LEAST_COLUMNS, LARGEST_GATHERED // _current.n)
    parts = [function(part) for part in torch.split(rows, at_once, dim=1)]
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)


def of_all_nodes(rows: Tensor) -> Tensor:
    """The rows of all nodes (n × w), from those of this process, for a computation that every process repeats.

    Since each process computes the whole loss, it already has the derivative of its rows.
    """
    if _current is None:
        return rows
    result: Tensor = _OfAllNodes.apply(rows, _current)  # type: ignore[no-untyped-call]
    return result


def work_shares(n: int) -> NodeRows:
    """The division of n independent pieces of work."""
    return NodeRows.of(n, 1, 0) if _current is None else NodeRows.of(n, _current.size, _current.rank)


def total(value: Tensor) -> Tensor:
    """The sum of a value over all processes, without a derivative."""
    return value if _current is None else process_group.add_up(value.detach().clone())


def _put_together(rows: Tensor, division: NodeRows) -> Tensor:
    return process_group.gather(_padded(rows, division.chunk))[: division.n]


def _padded(rows: Tensor, number: int) -> Tensor:
    """The rows, followed by as many rows of zeros as are missing."""
    return rows if len(rows) == number else nn.functional.pad(rows, (0, 0, 0, number - len(rows)))


class _Gathered(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, division: NodeRows) -> Tensor:
        ctx.division = division
        return _put_together(rows, division)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        division: NodeRows = ctx.division
        whole = _padded(grads[0], division.chunk * division.size)
        return process_group.reduce_scatter(whole)[: division.count], None


class _OfAllNodes(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, division: NodeRows) -> Tensor:
        ctx.own = division.own
        return _put_together(rows, division)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        return grads[0][ctx.own], None
