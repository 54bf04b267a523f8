"""The leading eigenpairs of a symmetric positive semi-definite matrix that is known only by its products."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

Multiply = Callable[[Tensor], Tensor]

# Components whose eigenvalue is below this share of the largest are taken for zero: eigenvectors of a Gram matrix in
# float64 are good to about 1e-16 / 1e-10, the accuracy promised for the rest.
RANK_TOLERANCE = 1e-10
# Iteration ends when ‖residual‖ / gap, a bound on the angle to the true subspace (Davis and Kahan), is below this ...
ANGLE_TOLERANCE = 1e-7
# ... or when the residual is rounding, which is all that a tie at the c-th place (gap 0) can reach.
RESIDUAL_FLOOR = 2e-15
# A block whose weakest direction is below this share of its strongest is orthogonalised once more after normalising.
_WEAK = 1e-4
# Plain products before the first orthogonalisation.
_POWERS = 8


def direct_size(count: int) -> int:
    """Up to this size the matrix itself, decomposed by LAPACK, is cheaper than a Krylov basis that nearly fills it."""
    return max(192, 6 * count)


def leading_eigenpairs(
    matrix: Tensor | Multiply, size: int, count: int, *, device: torch.device, block: int | None = None
) -> tuple[Tensor, Tensor]:
    """Return the ``count`` largest eigenvalues, falling, and their eigenvectors (size × count), in float64.

    ``matrix`` is the symmetric matrix or a function V ↦ K V. Small ones are handed to LAPACK. For larger ones block
    Lanczos with full reorthogonalisation and thick restarts needs only products with ``block`` columns at a time, and
    stops when the residual proves the subspace. Where the eigenvalues at places ``count`` and ``count + 1`` are equal
    the subspace is not unique: the answer is then one of the possible ones, the same for the same input.

    The start is random but fixed. A block of b vectors can show at most b copies of a repeated eigenvalue; if it
    shows that many there may be more, and the work is repeated with a block as wide as the answer.
    """
    count = min(count, size)
    if size <= direct_size(count):
        return _direct(matrix, size, count, device)
    # A dense matrix is read from memory for every product, so fewer and wider ones are better; a sparse one is not.
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
    return values[:count].to(device), krylov.vectors(coefficients[:, :count])


def _may_hide_copies(values: Tensor, block: int, *, alike: float) -> bool:
    """Whether ``block`` eigenvalues in a row are equal, with smaller ones behind them in the answer."""
    first, last = values[: 1 - block or None], values[block - 1 :]
    equal = (first - last <= alike) & (last - values[-1] > alike)
    return bool((equal & (first > RANK_TOLERANCE * values[0])).any())


def _direct(matrix: Tensor | Multiply, size: int, count: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Decompose the whole matrix, formed from its products, some columns at a time, if it is not given."""
    if not isinstance(matrix, Tensor):
        identity = torch.eye(size, dtype=torch.float64, device=device)
        matrix = torch.cat([matrix(part.T.contiguous()) for part in torch.split(identity, 32)], dim=1)
    values, vectors = torch.linalg.eigh((matrix + matrix.T) / 2)
    return values.flip(0)[:count], vectors.flip(1)[:, :count]


def _draw(generator: torch.Generator, rows: int, size: int, device: torch.device) -> Tensor:
    """Draw random directions on the CPU, so that every device starts from the same ones."""
    return torch.randn(rows, size, dtype=torch.float64, generator=generator).to(device)


def _start(multiply: Multiply, rows: Tensor) -> Tensor:
    """Weaken the many small eigenvalues in random rows by a few powers of K, which need no orthogonalisation."""
    columns = rows.T.contiguous()
    for _ in range(_POWERS):
        columns = multiply(columns)
        columns /= columns.norm().clamp(min=torch.finfo(columns.dtype).tiny)
    return columns.T.contiguous()


class _Krylov:
    """A basis Q of orthonormal rows with K Qᵀ = Qᵀ T + nextᵀ·coupling, grown block by block.

    All vectors are rows: b × k times k × m is the layout for which matrix products with few vectors are fast. Of the
    symmetric T (``projected``) only the lower triangle is kept, which is what ``eigh`` reads.
    """

    def __init__(self, multiply: Multiply, start: Tensor, capacity: int, generator: torch.Generator) -> None:
        self.multiply = multiply
        self.capacity = capacity
        self.generator = generator
        self.basis = start.new_empty(capacity, start.shape[1])
        self.projected = start.new_zeros(capacity, capacity)
        self.next, self.coupling = _orthonormal_rows(start)
        self.used = 0
        self.coupled_from = 0
        self.largest = 0.0

    @property
    def full(self) -> bool:
        return self.used + len(self.next) > self.capacity

    def expand(self) -> None:
        """Take in the next block: one product with K, the three-term recurrence, one full reorthogonalisation."""
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
        """Make a next block orthogonal to the basis that, normalised, is not: some of its directions are rounding.

        A direction that nothing is coupled to is rounding alone (the space is then invariant) and is drawn afresh.
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
        """Eigenvalues of T (falling), its eigenvectors, and the residual norm of the first ``count`` Ritz pairs."""
        values, coefficients = torch.linalg.eigh(self.projected[: self.used, : self.used].cpu())
        values, coefficients = values.flip(0), coefficients.flip(1)
        tail = coefficients[self.used - len(self.next) :, :count]
        return values, coefficients, float(torch.linalg.matrix_norm(self.coupling.cpu() @ tail))

    def restart(self, values: Tensor, coefficients: Tensor, *, keep: int) -> None:
        """Keep the leading Ritz vectors only; the next block couples to all of them."""
        self.basis[:keep] = self.vectors(coefficients[:, :keep]).T
        self.projected.zero_()
        self.projected[:keep, :keep] = torch.diag(values[:keep]).to(self.projected.device)
        self.used, self.coupled_from = keep, 0

    def vectors(self, coefficients: Tensor) -> Tensor:
        """Ritz vectors Qᵀ S as columns."""
        return (coefficients.T.to(self.basis.device) @ self.basis[: self.used]).T


def _orthonormal_rows(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Return orthonormal Q (b × k) and the triangular R with rowsᵀ = Qᵀ R."""
    q, r = torch.linalg.qr(rows.T)
    return q.T.contiguous(), r
