"""P = diag(s) X B, the factor of G = P Pᵀ, and its leading singular vectors."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from gcnsl.spectral.conventions import inverse, inverse_sqrt
from gcnsl.spectral.eigen import direct_size, leading_eigenpairs
from gcnsl.spectral.rows import Rows

# A Krylov space for c eigenvectors has about 4c + 64 dimensions. If products with X are not quick, summing PᵀP in one
# pass is faster than such an iteration, as long as P has at most this many times as many columns.
_GRAM_COLUMNS = 8


class Basis:
    """B (d × k): the anchors as unit columns, or the identity if there are no anchors."""

    def __init__(self, anchors: Rows | None) -> None:
        self.anchors = anchors
        if anchors is not None:
            self._inverse_norm = inverse_sqrt(anchors.squared_norms())[:, None]

    def size(self, rows: Rows) -> int:
        """The number of columns (k)."""
        return rows.shape[1] if self.anchors is None else self.anchors.shape[0]

    def contract(self, features: Tensor) -> Tensor:
        """Bᵀ · features: (d × b) → (k × b)."""
        return features if self.anchors is None else self._inverse_norm * self.anchors.matmul(features)

    def expand(self, coefficients: Tensor) -> Tensor:
        """B · coefficients: (k × b) → (d × b)."""
        return coefficients if self.anchors is None else self.anchors.t_matmul(self._inverse_norm * coefficients)

    def images(self, rows: Rows) -> Iterator[tuple[slice, Tensor]]:
        """X B (n × k) as dense float64 row blocks; it is never formed as a whole."""
        k = self.size(rows)
        matrix = None if self.anchors is None else self.expand(torch.eye(k, dtype=torch.float64, device=rows.device))
        for part in rows.slices(k):
            yield part, rows.block(part).to_dense() if matrix is None else rows.block(part) @ matrix

    def squared_norms(self, rows: Rows) -> Tensor:
        """‖x B‖² of each row x (n)."""
        if self.anchors is None:
            return rows.squared_norms()
        return torch.cat([image.square().sum(1) for _, image in self.images(rows)])


def decompose(rows: Rows, row_scale: Tensor, basis: Basis, count: int) -> tuple[Tensor, Tensor]:
    """The largest eigenvalues σ² of G, descending, and W = B V Σ⁻¹ (d × c), from the smaller of PᵀP and PPᵀ."""
    scale, n, k = row_scale[:, None], rows.shape[0], basis.size(rows)
    if n < k:

        def adjoint(u: Tensor) -> Tensor:  # B Pᵀ u
            return basis.expand(basis.contract(rows.t_matmul(scale * u)))

        values, u = leading_eigenpairs(lambda u: scale * rows.matmul(adjoint(u)), n, count, device=rows.device)
        return values, adjoint(u) * inverse(values)
    weight = scale.square()
    one_pass = k <= direct_size(count) or (not rows.quick and k <= _GRAM_COLUMNS * (4 * count + 64))
    product = (
        _gram(rows, scale, basis) if one_pass else lambda v: basis.contract(rows.gram_matmul(weight, basis.expand(v)))
    )
    values, v = leading_eigenpairs(product, k, count, device=rows.device)
    return values, basis.expand(v) * inverse_sqrt(values)


def _gram(rows: Rows, scale: Tensor, basis: Basis) -> Tensor:
    """PᵀP (k × k), summed over row blocks in float64."""
    k = basis.size(rows)
    if basis.anchors is not None and rows.shape[1] <= 2 * k:
        # Bᵀ (XᵀX) B: the sum over n rows takes d² / 2 multiplications per row instead of dk + k² / 2.
        return basis.contract(basis.contract(_gram(rows, scale, Basis(None))).T.contiguous())
    total = torch.zeros(k, k, dtype=torch.float64, device=rows.device)
    for part, image in basis.images(rows):
        block = scale[part] * image
        # NumPy uses the symmetry of the product, which halves the work; torch does not.
        total += torch.from_numpy(block.numpy().T @ block.numpy()) if block.device.type == "cpu" else block.T @ block
    return total
