"""ESC and ESC-ANCH: spectral features whose similarity is an inner product, so that S is never formed.

Both are one formula. With x̂ the row of a node and B a matrix,

    r = x̂ B        S = R Rᵀ        d_i = Σ_j s_ij = r_i · Σ_j r_j        P = D^-1/2 R = U Σ Vᵀ        F = U,

where ESC has x̂ = x, B = I, and ESC-ANCH has x̂ = x / ‖x‖ and B = Âᵀ, the m anchors as unit columns, so that R holds
cosines. With W = B V Σ⁻¹ every row, seen or not, has the features

    f = d^-1/2 x̂ W        where d = x̂ · B Bᵀ Σ_j x̂_j.

Nothing here needs R either: products with P are products with X and with the anchors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from sklearn.utils import check_random_state
from torch import Tensor

from gcnsl.errors import InputError
from gcnsl.spectral.conventions import (
    Scale,
    check_count,
    column_signs,
    inverse_sqrt,
    padded,
    scale_factor,
    within_rank,
)
from gcnsl.spectral.factor import Basis, Factor
from gcnsl.spectral.reading import as_rows
from gcnsl.spectral.rows import Rows


def esc(X: Any, n_components: int, *, scale: Scale = "unit") -> Any:
    """Efficient spectral clustering: leading left singular vectors of P = D^-1/2 X, with D the degrees of X Xᵀ.

    Args:
        X: features (n × d), dense or CSR, NumPy, SciPy or torch.
        n_components: c. Columns beyond the rank of P are zero.
        scale: ``"unit"`` (orthonormal columns) or ``"sqrt-n"`` (those times √n).

    Returns:
        F (n × c), of X's kind, dtype and device. See :class:`gcnsl.spectral.SpectralFeatures` for the rules on zero
        rows, negative features, ties and signs.
    """
    rows = as_rows(X)
    return rows.deliver(fit_esc(rows, n_components, scale=scale)[0])


def esc_anch(X: Any, n_components: int, n_anchors: int, *, scale: Scale = "unit", random_state: Any = None) -> Any:
    """ESC with anchors: leading left singular vectors of P = D^-1/2 R, R the cosines of all rows to m random rows.

    Args:
        X: features (n × d), dense or CSR, NumPy, SciPy or torch.
        n_components: c, at most ``n_anchors``. Columns beyond the rank of P are zero.
        n_anchors: m. With m ≥ n every row is an anchor.
        scale: ``"unit"`` (orthonormal columns) or ``"sqrt-n"`` (those times √n).
        random_state: seed of the choice of anchors, or a ``numpy.random.RandomState``.

    Returns:
        F (n × c), of X's kind, dtype and device. See :class:`gcnsl.spectral.SpectralFeatures` for the rules on zero
        rows, negative features, ties and signs.
    """
    rows = as_rows(X)
    anchors = choose_anchors(rows.shape[0], n_components, n_anchors, random_state=random_state)
    return rows.deliver(fit_esc_anch(rows, n_components, anchors, scale=scale)[0])


def choose_anchors(n: int, n_components: int, n_anchors: int, *, random_state: Any) -> Tensor:
    """Draw m of n rows without replacement, in rising order; all of them if m ≥ n."""
    if check_count("n_components", n_components) > check_count("n_anchors", n_anchors):
        raise InputError(
            f"n_components({n_components}) must be <= n_anchors({n_anchors}): "
            "there are no more singular vectors than anchors; take more anchors or fewer components"
        )
    if n_anchors >= n:
        return torch.arange(n)
    return torch.from_numpy(check_random_state(random_state).choice(n, n_anchors, replace=False)).sort().values


@dataclass(frozen=True)
class LinearMap:
    """x ↦ f = d^-1/2 x̂ W, d = x̂ · u.

    Attributes:
        weight: W (d × c), times the scale of F.
        total: u = B Bᵀ Σ_j x̂_j (d), summed over the training rows.
        anchors: the anchors' rows (m × d), whose unit vectors are the columns of B; None for ESC.
        signed: whether a training row had a negative entry.
        eigenvalues: of G (c), falling; zero beyond the rank.
    """

    weight: Tensor
    total: Tensor
    anchors: Rows | None
    signed: bool
    eigenvalues: Tensor

    def __call__(self, rows: Rows) -> Tensor:
        """Features (n × c) of any rows."""
        basis = Basis(self.anchors)
        unit = _unit_scale(rows, basis)
        bounded = torch.ones_like(unit, dtype=torch.bool) if self.signed else rows.negative_rows()
        return _project(rows, unit * inverse_sqrt(_degrees(rows, basis, unit, self.total, bounded)), self.weight)


def fit_esc(rows: Rows, n_components: int, *, scale: Scale) -> tuple[Tensor, LinearMap]:
    """F of the training rows, and the map that extends it."""
    return _fit(rows, None, check_count("n_components", n_components), scale_factor(scale, rows.shape[0]))


def fit_esc_anch(rows: Rows, n_components: int, anchors: Tensor, *, scale: Scale) -> tuple[Tensor, LinearMap]:
    """F of the training rows for the anchors with these row numbers, and the map that extends it."""
    count = check_count("n_components", n_components)
    return _fit(rows, rows.take(anchors.to(rows.device)), count, scale_factor(scale, rows.shape[0]))


def _fit(rows: Rows, anchors: Rows | None, count: int, factor: float) -> tuple[Tensor, LinearMap]:
    basis = Basis(anchors)
    unit = _unit_scale(rows, basis)
    total = basis.expand(basis.contract(rows.t_matmul(unit[:, None])))[:, 0]
    signed = rows.negative_rows().any()
    row_scale = unit * inverse_sqrt(_degrees(rows, basis, unit, total, signed.expand(rows.shape[0])))
    eigenvalues, weight = Factor(rows, row_scale[:, None], basis).decompose(count)
    weight = padded(weight, count)
    features = _project(rows, row_scale, weight)
    signs = column_signs(features) * factor
    features *= signs.to(features.dtype)
    return features, LinearMap(weight * signs, total, anchors, bool(signed), padded(within_rank(eigenvalues), count))


def _unit_scale(rows: Rows, basis: Basis) -> Tensor:
    """What x̂ is x multiplied by (n): 1 for inner products, 1 / ‖x‖ for cosines (0 for a zero row)."""
    if basis.anchors is None:
        return torch.ones(rows.shape[0], dtype=torch.float64, device=rows.device)
    return inverse_sqrt(rows.squared_norms())


def _degrees(rows: Rows, basis: Basis, unit: Tensor, total: Tensor, bounded: Tensor) -> Tensor:
    """Degrees d = x̂ · u (n); in the rows ``bounded``, for negative features' sake, at least s_ii = ‖r_i‖².

    Without negative features a sum Σ_j s_ij of similarities never falls below its own term s_ii. With them it can,
    down to zero and below; the bound that then fails is enforced.
    """
    degree = unit * rows.matmul(total[:, None])[:, 0]
    if not bool(bounded.any()):
        return degree
    return torch.where(bounded, torch.maximum(degree, unit.square() * basis.squared_norms(rows)), degree)


def _project(rows: Rows, row_scale: Tensor, weight: Tensor) -> Tensor:
    """F = diag(row_scale) X W, block by block, in X's dtype."""
    features = rows.empty(weight.shape[1])
    for part in rows.slices(weight.shape[1]):
        features[part] = row_scale[part, None] * (rows.block(part) @ weight)
    return features
