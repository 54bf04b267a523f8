"""The rows of a model's inputs that belong to a process."""

from collections.abc import Collection, Sequence

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from gcnsl.sharding.node_rows import NodeRows, by_columns, gathered, node_rows
from gcnsl.sparse import Matrix, SparseMatrix, from_scipy, slice_rows, to_scipy


class ShardedMatrix(SparseMatrix):
    """The rows of this process of a matrix M whose columns stand for the nodes, such as Â.

    The product with the rows of B that belong to this process (k × w) is the rows of M·B that belong to it: B is put
    together from all processes. In this sense the matrix is square, and so is its shape. If M has several blocks of
    columns for the nodes, B has as many rows for each node.

    Args:
        rows: The rows of M, with columns in the order of the processes (:meth:`NodeRows.by_process`).
        whole_shape: The shape of M.
        order: If this has changed the order of the entries, the place that each of them had in M's rows.
        first_entry: The number of M's entries before these.
    """

    def __init__(
        self, rows: Matrix, whole_shape: tuple[int, int], *, order: Tensor | None = None, first_entry: int = 0
    ) -> None:
        n, columns = whole_shape
        self.rows, self.whole_shape, self.order, self.first_entry = rows, whole_shape, order, first_entry
        self.shape = len(rows), len(rows) * columns // n
        stored = rows.values if isinstance(rows, SparseMatrix) else rows.flatten()
        self.values = stored if order is None else torch.empty_like(stored).index_copy_(0, order, stored)

    def to(self, device: torch.device | str) -> "ShardedMatrix":
        """The matrix on this device."""
        order = None if self.order is None else self.order.to(device)
        return ShardedMatrix(self.rows.to(device), self.whole_shape, order=order, first_entry=self.first_entry)

    def with_values(self, values: Tensor) -> "ShardedMatrix":
        """A matrix with the same pattern and other values, which are in the order of M's."""
        stored = values if self.order is None else values[self.order]
        rows = self.rows.with_values(stored) if isinstance(self.rows, SparseMatrix) else stored.view(self.rows.shape)
        return ShardedMatrix(rows, self.whole_shape, order=self.order, first_entry=self.first_entry)

    def __matmul__(self, dense: Tensor) -> Tensor:
        """M·B: (k × w) → (k × w), both of this process."""
        return by_columns(lambda part: self.rows @ gathered(part), dense)


def shard(inputs: Sequence[Matrix], rows: NodeRows, *, node_columns: Collection[int]) -> tuple[Matrix, ...]:
    """The part of a model's inputs that a process has.

    Args:
        inputs: Matrices with a row for each node.
        rows: The nodes of the process.
        node_columns: The numbers of those inputs whose columns stand for nodes, too.
    """
    return tuple(
        _sharded_columns(value, rows) if number in node_columns else _own_rows(value, rows)
        for number, value in enumerate(inputs)
    )


def whole_shape(value: Matrix) -> list[int]:
    """The shape of a model's input, of which this may be the part of one of several processes."""
    if isinstance(value, ShardedMatrix):
        return list(value.whole_shape)
    rows = node_rows()
    return list(value.shape) if rows is None else [rows.n, value.shape[1]]


def _own_rows(value: Matrix, rows: NodeRows) -> Matrix:
    """A copy of the rows of this process: a view would keep the memory of the whole matrix, and be sent with it."""
    if isinstance(value, Tensor):
        return value[rows.own].clone()
    part = SparseMatrix(slice_rows(value.csr, rows.own.start, rows.own.stop).clone())
    part.first_entry = int(value.csr.crow_indices()[rows.own.start])
    return part


def _sharded_columns(value: Matrix, rows: NodeRows) -> ShardedMatrix:
    """The rows of this process of a matrix whose columns stand for nodes; the columns are ordered by process."""
    n, columns = value.shape
    part = _own_rows(value, rows)
    first_entry = rows.own.start * columns if isinstance(part, Tensor) else part.first_entry
    order = None
    if columns > n:
        by_process = rows.by_process(columns)
        if isinstance(part, Tensor):
            order = torch.arange(part.numel()).view(part.shape)[:, by_process].flatten()
            part = part[:, by_process]
        else:
            stored = to_scipy(part)
            places = sp.csr_array((np.arange(stored.nnz), stored.indices, stored.indptr), shape=stored.shape)
            places = places[:, by_process.numpy()]
            places.sort_indices()
            order = torch.from_numpy(places.data)
            ordered = sp.csr_array((stored.data[places.data], places.indices, places.indptr), shape=places.shape)
            part = SparseMatrix(from_scipy(ordered))
    return ShardedMatrix(part, (n, columns), order=order, first_entry=first_entry)
