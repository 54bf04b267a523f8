"""The leading eigenpairs of a symmetric positive semi-definite matrix, which may be given by its products only."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

Multiply = Callable[[Tensor], Tensor]

# Eigenvalues below this share of the largest count as zero. Eigenvectors of the others have errors of at most about
# 1e-16 / 1e-10, because the Gram matrix is in float64.
RANK_TOLERANCE = 1e-10
# Iteration stops when ‖residual‖ / gap, a bound on the angle to the true subspace (Davis and Kahan), is below this ...
ANGLE_TOLERANCE = 1e-7
# ... or when the residual is this share of the largest eigenvalue. With a tie at the last place the gap is 0.
RESIDUAL_FLOOR = 2e-15
# A block whose weakest direction is below this share of its strongest is orthogonalised a second time.
_WEAK = 1e-4
# Number of products with the start vectors before the first orthogonalisation.
_POWERS = 8


def direct_size(count: int) -> int:
    """Up to this size a full decomposition by LAPACK is faster than a Krylov basis of nearly the same size."""
    return max(192, 6 * count)


def leading_eigenpairs(
    matrix: Tensor | Multiply, size: int, count: int, *, device: torch.device, block: int | None = None
) -> tuple[Tensor, Tensor]:
    """Return the ``count`` largest eigenvalues, descending, and their eigenvectors (size × count), in float64.

    Eigenvalues beyond the rank are exactly zero. ``matrix`` is the symmetric matrix K or a function V ↦ K V. Small
    matrices are decomposed by LAPACK, larger ones by block Lanczos with full reorthogonalisation and thick restarts,
    which multiplies ``block`` columns at a time and stops when the residual guarantees the subspace. If the next
    eigenvalue equals the last one returned, the subspace is not unique; the same input still gives the same one.

    The start vectors are random with a fixed seed. A block of b vectors finds at most b copies of a repeated
    eigenvalue. If it finds b, there may be more, so the computation is repeated with a block of ``count`` vectors.
    """
    count = min(count, size)
    if size <= direct_size(count):
        return _direct(matrix, size, count, device)
    # Every product reads a dense matrix from memory, so fewer products with more columns are faster.
    block = block or (8 if isinstance(matrix, Tensor) else 4)
    multiply: Multiply = matrix.matmul if isinstance(matrix, Tensor) else matrix
    generator = torch.Generator().manual_seed(0)
    capacity = min(2 * count + 12 * block, size - block)
    krylov = _Krylov(multiply, _start(multiply, _draw(generator, block, size, device)), capacity, generator)
    check_at, columns, limit = capacity, 0, 2 * size
    previous: tuple[int, float] | None = None
    while columns < limit:
        krylov.expand()
        columns += block
        if krylov.used < check_at and not krylov.full:
            continue
        values, coefficients, residual = krylov.ritz(count)
        target = max(ANGLE_TOLERANCE * float(values[count - 1] - values[count]), RESIDUAL_FLOOR * float(values[0]))
        if residual <= target:
            break
        missing = math.log(residual / target)
        rate = 0.25 if previous is None else max(0.05, (previous[1] - math.log(residual)) / (columns - previous[0]))
        previous = columns, math.log(residual)
        if krylov.full:
            krylov.restart(values, coefficients, keep=count + (krylov.capacity - count) // 3)
        check_at = krylov.used + math.ceil(missing / rate)
    else:
        return _direct(matrix, size, count, device)
    if _may_hide_copies(values[:count], block, alike=10 * max(residual, RESIDUAL_FLOOR * float(values[0]))):
        return leading_eigenpairs(matrix, size, count, device=device, block=count)
    return _within_rank(values[:count]).to(device), krylov.vectors(coefficients[:, :count])


def _within_rank(values: Tensor) -> Tensor:
    return torch.where(values > RANK_TOLERANCE * values[:1], values, 0.0)


def _may_hide_copies(values: Tensor, block: int, *, alike: float) -> bool:
    """Whether ``block`` consecutive eigenvalues are equal and smaller ones follow."""
    first, last = values[: 1 - block or None], values[block - 1 :]
    equal = (first - last <= alike) & (last - values[-1] > alike)
    return bool((equal & (first > RANK_TOLERANCE * values[0])).any())


def _direct(matrix: Tensor | Multiply, size: int, count: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Decompose the whole matrix, which is formed from its products if necessary."""
    if not isinstance(matrix, Tensor):
        identity = torch.eye(size, dtype=torch.float64, device=device)
        matrix = torch.cat([matrix(part.T.contiguous()) for part in torch.split(identity, 32)], dim=1)
    values, vectors = torch.linalg.eigh((matrix + matrix.T) / 2)
    return _within_rank(values.flip(0)[:count]), vectors.flip(1)[:, :count]


def _draw(generator: torch.Generator, rows: int, size: int, device: torch.device) -> Tensor:
    """Draw random vectors on the CPU, so that every device starts from the same ones."""
    return torch.randn(rows, size, dtype=torch.float64, generator=generator).to(device)


def _start(multiply: Multiply, rows: Tensor) -> Tensor:
    """Multiply random rows by a power of K, which damps small eigenvalues without any orthogonalisation."""
    columns = rows.T.contiguous()
    for _ in range(_POWERS):
        columns = multiply(columns)
        columns /= columns.norm().clamp(min=torch.finfo(columns.dtype).tiny)
    return columns.T.contiguous()


class _Krylov:
    """A basis Q of orthonormal rows with K Qᵀ = Qᵀ T + nextᵀ·coupling, which grows block by block.

    Vectors are stored as rows, because products with few vectors are fastest in the layout b × k times k × m. Only the
    lower triangle of the symmetric T (``projected``) is filled; ``eigh`` reads no more.
    """

    def __init__(self, multiply: Multiply, start: Tensor, capacity: int, generator: torch.Generator) -> None:
        self.multiply, self.capacity, self.generator = multiply, capacity, generator
        self.basis = start.new_empty(capacity, start.shape[1])
        self.projected = start.new_zeros(capacity, capacity)
        self.next, self.coupling = _orthonormal_rows(start)
        self.used, self.coupled_from, self.largest = 0, 0, 0.0

    @property
    def full(self) -> bool:
        return self.used + len(self.next) > self.capacity

    def expand(self) -> None:
        """Add the next block: one product with K, the three-term recurrence, one full reorthogonalisation."""
        first, last = self.used, self.used + len(self.next)
        self.basis[first:last] = self.next
        image = self.multiply(self.next.T.contiguous()).T.contiguous()
        near = self.basis[self.coupled_from : last]
        along = image @ near.T
        image.addmm_(along, near, alpha=-1)
        self.projected[first:last, self.coupled_from : last] = along
        self.used, self.coupled_from = last, first
        self._orthogonalise(image)
        self.next, self.coupling = _orthonormal_rows(image)
        self.largest = max(self.largest, float(along.norm()))
        weakest, strongest = self.coupling.diagonal().abs().aminmax()
        if float(weakest) <= max(_WEAK * float(strongest), RESIDUAL_FLOOR * self.largest):
            self._settle()

    def _settle(self) -> None:
        """Orthogonalise the next block again, because some of its directions are mostly rounding error.

        A direction without coupling is nothing but rounding error (the space is invariant) and is drawn again.
        """
        strength = self.coupling.norm(dim=1)
        lost = strength <= max(RESIDUAL_FLOOR * float(strength.max()), RESIDUAL_FLOOR * self.largest)
        self.coupling[lost] = 0
        self.next[lost] = _draw(self.generator, int(lost.sum()), self.basis.shape[1], self.next.device)
        for _ in range(2):
            self._orthogonalise(self.next)
            self.next, change = _orthonormal_rows(self.next)
            self.coupling = change @ self.coupling

    def _orthogonalise(self, rows: Tensor) -> None:
        basis = self.basis[: self.used]
        rows.addmm_(rows @ basis.T, basis, alpha=-1)

    def ritz(self, count: int) -> tuple[Tensor, Tensor, float]:
        """Eigenvalues of T (descending), its eigenvectors, and the residual norm of the first ``count`` Ritz pairs."""
        values, coefficients = torch.linalg.eigh(self.projected[: self.used, : self.used].cpu())
        values, coefficients = values.flip(0), coefficients.flip(1)
        tail = coefficients[self.used - len(self.next) :, :count]
        return values, coefficients, float(torch.linalg.matrix_norm(self.coupling.cpu() @ tail))

    def restart(self, values: Tensor, coefficients: Tensor, *, keep: int) -> None:
        """Keep only the leading Ritz vectors, to all of which the next block is coupled."""
        self.basis[:keep] = self.vectors(coefficients[:, :keep]).T
        self.projected.zero_()
        self.projected[:keep, :keep] = torch.diag(values[:keep]).to(self.projected.device)
        self.used, self.coupled_from = keep, 0

    def vectors(self, coefficients: Tensor) -> Tensor:
        """The Ritz vectors Qᵀ S as columns."""
        return (coefficients.T.to(self.basis.device) @ self.basis[: self.used]).T


def _orthonormal_rows(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Return orthonormal Q (b × k) and the triangular R with rowsᵀ = Qᵀ R."""
    q, r = torch.linalg.qr(rows.T)
    return q.T.contiguous(), r
