"""The leading eigenpairs of a symmetric positive semi-definite matrix, which may be given by its products only."""

from __future__ import annotations

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
# Products with the start vectors before the first orthogonalisation; they damp small eigenvalues.
_POWERS = 8
# Convergence is looked for after so many blocks: it takes a small eigendecomposition.
_BLOCKS_BETWEEN_CHECKS = 4


def direct_size(count: int) -> int:
    """Up to this size a full decomposition by LAPACK is faster than a Krylov basis of nearly the same size."""
    return max(192, 6 * count)


def leading_eigenpairs(
    matrix: Tensor | Multiply,
    size: int,
    count: int,
    *,
    device: torch.device,
    block: int | None = None,
    most_products: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the ``count`` largest eigenvalues, descending, and their eigenvectors (size × count), in float64.

    Eigenvalues beyond the rank are exactly zero. ``matrix`` is the symmetric matrix K or a function V ↦ K V. Small
    matrices are decomposed by LAPACK, larger ones by block Lanczos with full reorthogonalisation and thick restarts,
    which multiplies ``block`` columns at a time and stops when the residual guarantees the subspace. If the next
    eigenvalue equals the last one returned, the subspace is not unique; the same input still gives the same one.

    A block of b vectors finds at most b copies of a repeated eigenvalue. If it finds b, there may be more, so the
    computation is repeated with a block of ``count`` vectors. (ARPACK, with a block of one, misses copies.)

    With ``most_products``, what is found after so many products is returned, even if it is only an approximation.
    """
    count = min(count, size)
    # Every product reads a dense matrix from memory, so fewer products with more columns are faster.
    block = block or (8 if isinstance(matrix, Tensor) else 4)
    if size > direct_size(count):
        multiply = matrix.matmul if isinstance(matrix, Tensor) else matrix
        found = _lanczos(multiply, size, count, block, device, most_products or 2 * size)
        if found is not None:
            values, vectors, error = found
            first, last = values[: 1 - block or None], values[block - 1 :]  # of ``block`` consecutive values
            copies = (first - last <= error) & (last - values[-1] > error) & (first > RANK_TOLERANCE * values[0])
            if bool(copies.any()) and most_products is None:
                return leading_eigenpairs(matrix, size, count, device=device, block=count)
            return _within_rank(values), vectors
    if not isinstance(matrix, Tensor):
        identity = torch.eye(size, dtype=torch.float64, device=device)
        matrix = torch.cat([matrix(part.T.contiguous()) for part in torch.split(identity, 32)], dim=1)
    values, vectors = torch.linalg.eigh((matrix + matrix.T) / 2)
    return _within_rank(values.flip(0)[:count]), vectors.flip(1)[:, :count]


def _within_rank(values: Tensor) -> Tensor:
    return torch.where(values > RANK_TOLERANCE * values[:1], values, 0.0)


def _lanczos(  # noqa: PLR0917 - private
    multiply: Multiply, size: int, count: int, block: int, device: torch.device, most_products: int
) -> tuple[Tensor, Tensor, float] | None:
    """Eigenvalues, eigenvectors and the error below which eigenvalues count as equal; None without convergence.

    The basis Q has orthonormal rows, because products with few vectors are fastest in the layout b × k times k × m, and
    K Qᵀ = Qᵀ T + nextᵀ·coupling. Only the lower triangle of T is filled; ``eigh`` reads no more.
    """
    generator = torch.Generator().manual_seed(0)

    def draw(rows: int) -> Tensor:  # on the CPU, so that every device gets the same
        return torch.randn(rows, size, dtype=torch.float64, generator=generator).to(device)

    capacity = min(2 * count + 16 * block, size - block)
    basis = torch.empty(capacity, size, dtype=torch.float64, device=device)
    projected = torch.zeros(capacity, capacity, dtype=torch.float64, device=device)
    start = draw(block).T.contiguous()
    for _ in range(_POWERS):
        start = multiply(start)
        start /= start.norm().clamp(min=torch.finfo(start.dtype).tiny)
    following, coupling = _orthonormal(start.T)
    used = linked = products = 0  # T links the last block to the rows from ``linked`` on
    while products * block < 2 * size:
        check_at = max(used + _BLOCKS_BETWEEN_CHECKS * block, count + 2 * block)
        while used + block <= min(capacity, check_at):
            last = slice(used, used + block)
            basis[last], used, products = following, used + block, products + 1
            image = multiply(following.T.contiguous()).T.contiguous()
            along = projected[last, linked:used] = image @ basis[linked:used].T
            image.addmm_(along, basis[linked:used], alpha=-1)
            linked = last.start
            following, coupling = _orthonormal(_without(image, basis[:used]))
            strength, floor = coupling.norm(dim=1), RESIDUAL_FLOOR * float(along.norm())
            if float(strength.min()) <= 1e-4 * float(strength.max()) + floor:
                # Some directions are mostly rounding error. Those that are nothing else (the space is invariant) are
                # drawn again; all are orthogonalised again.
                lost = strength <= floor
                coupling[lost], following[lost] = 0, draw(int(lost.sum()))
                for _ in range(2):
                    following, change = _orthonormal(_without(following, basis[:used]))
                    coupling = change @ coupling
        values, coefficients = (part.flip(-1) for part in torch.linalg.eigh(projected[:used, :used]))
        residual = float(torch.linalg.matrix_norm(coupling @ coefficients[used - block :, :count]))
        floor = RESIDUAL_FLOOR * float(values[0])
        done = residual <= max(ANGLE_TOLERANCE * float(values[count - 1] - values[count]), floor)
        if done or products >= most_products:
            return values[:count], (coefficients[:, :count].T @ basis[:used]).T, 10 * max(residual, floor)
        if used + block > capacity:
            kept = count + (capacity - count) // 3
            basis[:kept], used, linked = coefficients[:, :kept].T @ basis[:used], kept, 0
            projected.zero_().diagonal()[:kept] = values[:kept]
    return None


def _without(rows: Tensor, basis: Tensor) -> Tensor:
    """The part of the rows (changed in place) that is orthogonal to the orthonormal rows of the basis."""
    return rows.addmm_(rows @ basis.T, basis, alpha=-1)


def _orthonormal(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Return orthonormal rows Q (b × k) and the triangular R with rowsᵀ = Qᵀ R."""
    q, r = torch.linalg.qr(rows.T)
    return q.T.contiguous(), r
