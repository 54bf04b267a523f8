"""Sparse matrices: conversions between torch and SciPy, adjacency matrices, eigenvectors, products with constants."""

from __future__ import annotations

import inspect
import warnings
from functools import cached_property, partial
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from scipy.sparse.linalg import eigsh
from torch import Tensor
from torch_geometric.utils import add_remaining_self_loops, coalesce, degree, remove_self_loops, scatter

SPARSE_SHARE = 0.15
"""Up to this share of nonzero entries, a sparse product is faster than a dense one."""
arpack: Any = partial(eigsh, which="LA", **({"rng": 0} if "rng" in inspect.signature(eigsh).parameters else {}))
"""SciPy's ``eigsh`` for the largest eigenvalues, with a seed: since SciPy 1.17, it goes on with random vectors, others
in each call, where it has found all that its start vector leads to."""


def csr_tensor(start: Tensor, column: Tensor, values: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The torch CSR tensor of this shape, from row pointers (n + 1) and a column and a value per stored entry."""
    return torch.sparse_csr_tensor(start, column, values, size=shape)


# torch warns once in a process that the layout is in beta and that its invariants are not checked. It is made to do so
# here, where nobody sees it, so that no later tensor does, in whatever thread; our parts keep the invariants.
with warnings.catch_warnings():
    warnings.simplefilter("ignore", UserWarning)
    csr_tensor(torch.tensor([0, 0]), torch.tensor([], dtype=torch.int64), torch.tensor([]), (1, 1))


def to_scipy(x: Matrix) -> sp.csr_array:
    """A dense or sparse matrix as a SciPy matrix, which shares its memory with a CSR tensor on the CPU."""
    x = (x if isinstance(x, Tensor) else x.csr).detach().cpu()
    if x.layout == torch.strided:
        return sp.csr_array(x.numpy())
    if x.layout != torch.sparse_csr:
        x = x.to_sparse_csr()
    return sp.csr_array((x.values().numpy(), x.col_indices().numpy(), x.crow_indices().numpy()), shape=tuple(x.shape))


def from_scipy(matrix: sp.csr_array) -> Tensor:
    """A SciPy CSR matrix as a torch CSR tensor with 64-bit indices."""
    parts = (matrix.indptr.astype(np.int64, copy=False), matrix.indices.astype(np.int64, copy=False), matrix.data)
    with warnings.catch_warnings():  # nobody writes to the tensor
        warnings.filterwarnings("ignore", message="The given NumPy array is not writ", category=UserWarning)
        start, column, values = map(torch.from_numpy, parts)
    return csr_tensor(start, column, values, matrix.shape)


def take_rows(x: Tensor, rows: NDArray[np.int64] | slice) -> Tensor:
    """Some rows of a dense or CSR matrix on the CPU, in the order of ``rows``."""
    return x[rows] if x.layout == torch.strided else from_scipy(to_scipy(x)[rows])


def stored_parts(x: Tensor, name: str) -> dict[str, Tensor]:
    """A dense or CSR matrix as dense tensors by name, for files. :func:`from_parts` is the inverse."""
    if x.layout != torch.sparse_csr:
        return {name: x}
    return {f"{name}.start": x.crow_indices(), f"{name}.column": x.col_indices(), f"{name}.value": x.values()}


def from_parts(parts: dict[str, Tensor], name: str, shape: tuple[int, int]) -> Tensor:
    """The matrix that was given to :func:`stored_parts`; the shape is needed for a CSR matrix only.

    Raises:
        KeyError: If a part is missing.
        RuntimeError: If the parts do not form a CSR matrix of this shape.
    """
    if name in parts:
        return parts[name]
    with torch.sparse.check_sparse_tensor_invariants():  # type: ignore[no-untyped-call]
        return csr_tensor(parts[f"{name}.start"], parts[f"{name}.column"], parts[f"{name}.value"], shape)


def weighted_edges_sorted(
    edge_index: Tensor, weight: Tensor, num_nodes: int, *, self_loops: bool
) -> tuple[Tensor, Tensor]:
    """Distinct edges (2 × E), sorted by source, then target, and weights (E); with loops at all nodes or at none.

    Of duplicates the largest weight is kept, and added loops have weight 1.
    """
    if self_loops:
        edges, weights = add_remaining_self_loops(edge_index, weight, fill_value=1.0, num_nodes=num_nodes)
    else:
        edges, weights = remove_self_loops(edge_index, weight)
    ordered: tuple[Tensor, Tensor] = coalesce(edges, weights, num_nodes=num_nodes, reduce="max")
    return ordered


def adjacency_matrix(edge_index: Tensor, num_nodes: int, *, self_loops: bool) -> sp.csr_array:
    """A (n × n, entries 1) as a SciPy matrix with sorted rows; with loops at all nodes or at none."""
    edges, weight = edge_index.cpu(), torch.ones(edge_index.shape[1])
    source, target = weighted_edges_sorted(edges, weight, num_nodes, self_loops=self_loops)[0].numpy()
    start = np.concatenate([[0], np.cumsum(np.bincount(source, minlength=num_nodes))])
    return sp.csr_array((np.ones(len(source), dtype=np.float32), target, start), shape=(num_nodes, num_nodes))


def pairs_in_two_steps(edge_index: Tensor, num_nodes: int) -> int:
    """The most pairs of nodes that can be two steps apart: a node's walks of two steps, at most n, over all nodes."""
    source, target = edge_index
    walks = scatter(degree(source, num_nodes, dtype=torch.float64)[target], source, dim_size=num_nodes)
    return int(walks.clamp(max=num_nodes).sum())


class SparseMatrix:
    """A constant sparse matrix M (n × m) for products M·B. It also stores Mᵀ, for the backward pass.

    torch can differentiate such a product itself, but is slow because it multiplies by a transposed view of M. Here the
    pattern of Mᵀ is computed once, and its values, which are those of M in another order, when they are first needed.

    Args:
        matrix: M as a torch CSR tensor.
    """

    def __init__(self, matrix: Tensor) -> None:
        # MKL reads 32-bit indices: torch would convert others for every product
        start, column = matrix.crow_indices().int(), matrix.col_indices().int()
        self.shape: tuple[int, int] = (matrix.shape[0], matrix.shape[1])
        self.values = matrix.values().detach()  # not a view, which would keep the whole tensor
        number = np.arange(len(column), dtype=np.int32)
        swapped = sp.csr_array((number, column.cpu().numpy(), start.cpu().numpy()), shape=self.shape).tocsc()
        parts = (torch.from_numpy(part).int().to(matrix.device) for part in (swapped.indptr, swapped.indices))
        self._places: tuple[Tensor, ...] = start, column, *parts, torch.from_numpy(swapped.data).to(matrix.device)

    @classmethod
    def from_edges(cls, edge_index: Tensor, weight: Tensor, num_nodes: int) -> SparseMatrix:
        """The n × n matrix with entries ``weight`` (E) at ``edge_index`` (2 × E, sorted by row, then column)."""
        size = torch.bincount(edge_index[0], minlength=num_nodes)
        start = torch.cat([size.new_zeros(1), size.cumsum(0)])
        return cls(csr_tensor(start, edge_index[1], weight, (num_nodes, num_nodes)))

    @property
    def device(self) -> torch.device:
        """The device of the matrix."""
        return self.values.device

    @property
    def dtype(self) -> torch.dtype:
        """The type of the entries."""
        return self.values.dtype

    @property
    def places(self) -> Tensor:
        """Row and column of every entry (2 × E)."""
        start, column = self._places[:2]
        return torch.stack([torch.arange(len(self), device=self.device).repeat_interleave(start.diff()), column.long()])

    def __len__(self) -> int:
        return self.shape[0]

    def with_values(self, values: Tensor, places: tuple[Tensor, ...] | None = None) -> SparseMatrix:
        """A matrix with other values at the same places, by default in the same tensors."""
        other = object.__new__(SparseMatrix)
        other.shape, other.values, other._places = self.shape, values, places or self._places
        return other

    def sharing_places(self, other: Matrix) -> SparseMatrix:
        """The same matrix; if another one has its entries at the same places, the memory of these is shared."""
        if not isinstance(other, SparseMatrix) or self.shape != other.shape:
            return self
        same = all(map(torch.equal, self._places[:2], other._places[:2]))
        return other.with_values(self.values) if same else self

    def to(self, device: torch.device | str) -> SparseMatrix:
        """The matrix on this device; the matrix itself if it is there already."""
        values = self.values.to(device)
        if values is self.values:
            return self
        return self.with_values(values, tuple(part.to(device) for part in self._places))

    def to_dense(self) -> Tensor:
        """The matrix as a dense tensor (n × m)."""
        return self.csr.to_dense()

    def row(self, number: int) -> Tensor:
        """One row as a dense tensor (m)."""
        start, column = self._places[:2]
        part = slice(*start[number : number + 2].tolist())
        return self.values.new_zeros(self.shape[1]).index_add_(0, column[part], self.values[part])

    def __matmul__(self, dense: Tensor) -> Tensor:
        """M·B: (m × k) → (n × k)."""
        if torch.is_autocast_enabled(dense.device.type):
            with torch.autocast(dense.device.type, enabled=False):  # it has no sparse products
                return self @ dense.to(self.dtype)
        if self.values.requires_grad:  # an explainer learns which entries matter
            row, column = self.places
            return dense.new_zeros(len(self), dense.shape[1]).index_add(0, row, self.values[:, None] * dense[column])
        product: Tensor = _Product.apply(dense, self)  # type: ignore[no-untyped-call]
        return product

    @cached_property
    def csr(self) -> Tensor:
        """The matrix as a torch CSR tensor."""
        start, column = self._places[:2]
        return csr_tensor(start, column, self.values, self.shape)

    @cached_property
    def _transposed(self) -> Tensor:
        start, column, order = self._places[2:]
        return csr_tensor(start, column, self.values.index_select(0, order), self.shape[::-1])

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.shape[0]} × {self.shape[1]}, {len(self.values)} entries)"


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, dense: Tensor, matrix: SparseMatrix) -> Tensor:
        ctx.matrix = matrix
        return matrix.csr @ dense

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor, None]:
        return ctx.matrix._transposed @ grad_outputs[0], None


Matrix: TypeAlias = Tensor | SparseMatrix
"""What a model reads: a dense or sparse matrix that supports ``matrix @ dense``."""


def stored_entries(matrix: Matrix) -> int:
    """The number of entries that are stored: all of a dense matrix, and of a sparse one those that can be nonzero."""
    if isinstance(matrix, SparseMatrix):
        return len(matrix.values)
    return len(matrix.values()) if matrix.layout == torch.sparse_csr else matrix.numel()


def fastest_form(matrix: Matrix) -> Matrix:
    """The matrix in the form with the fastest products: sparse if few entries are nonzero, else dense.

    A CSR tensor always stays sparse: as a dense matrix it might not fit into memory.
    """
    if isinstance(matrix, SparseMatrix):
        n, m = matrix.shape
        return matrix.to_dense() if len(matrix.values) > SPARSE_SHARE * n * m else matrix
    if matrix.layout == torch.sparse_csr:
        return SparseMatrix(matrix)
    if int(matrix.count_nonzero()) > SPARSE_SHARE * matrix.numel():
        return matrix
    return SparseMatrix(matrix.to_sparse_csr())
