"""ESC and ESC-ANCH: spectral features whose similarity is an inner product, so that S is never formed.

Both follow the same formula. With x̂ the row of a node and B a matrix,

    r = x̂ B        S = R Rᵀ        d_i = Σ_j s_ij = r_i · Σ_j r_j        P = D^-1/2 R = U Σ Vᵀ        F = U.

ESC has x̂ = x and B = I. ESC-ANCH has x̂ = x / ‖x‖ and B = Âᵀ, the m anchors as unit columns, so R holds cosines. With
W = B V Σ⁻¹, the features of any row, of the training data or not, are

    f = d^-1/2 x̂ W        where d = x̂ · B Bᵀ Σ_j x̂_j.

R is never formed either: products with P are products with X and with the anchors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gcnsl.checks import check_generator, check_whole
from gcnsl.cores import threads_for
from gcnsl.errors import ArgumentError
from gcnsl.spectral.conventions import Scale, column_signs, inverse_sqrt, padded, restored, scale_factor
from gcnsl.spectral.factor import Basis, decompose
from gcnsl.spectral.rows import Rows, as_rows


def esc(X: Any, n_components: int, *, scale: Scale = "unit") -> Any:
    """Efficient spectral clustering: the leading left singular vectors of P = D^-1/2 X, D the row sums of X Xᵀ.

    Returns F (n × c). :class:`gcnsl.spectral.SpectralFeatures` documents the arguments and all special cases.
    """
    rows = as_rows(X)
    return rows.deliver(fit_esc(rows, n_components, scale=scale)[0])


def esc_anch(X: Any, n_components: int, n_anchors: int, *, scale: Scale = "unit", random_state: Any = None) -> Any:
    """ESC with anchors: the leading left singular vectors of P = D^-1/2 R, R the cosines of all rows to m random rows.

    Returns F (n × c). :class:`gcnsl.spectral.SpectralFeatures` documents the arguments and all special cases.
    """
    rows = as_rows(X)
    anchors = choose_anchors(rows.shape[0], n_components, n_anchors, random_state=random_state)
    return rows.deliver(fit_esc(rows, n_components, anchor_numbers=anchors, scale=scale)[0])


def choose_anchors(n: int, n_components: int, n_anchors: int, *, random_state: Any) -> Tensor:
    """Draw m of n row numbers without replacement, in ascending order; all of them if m ≥ n."""
    if check_whole("n_components", n_components, least=1) > check_whole("n_anchors", n_anchors, least=1):
        rule = f"must be <= n_anchors({n_anchors}), the largest possible rank: use more anchors or fewer components"
        raise ArgumentError("n_components", n_components, rule)
    if n_anchors >= n:
        return torch.arange(n)
    return torch.from_numpy(check_generator(random_state).choice(n, n_anchors, replace=False)).sort().values


@dataclass(frozen=True)
class LinearMap:
    """x ↦ f = d^-1/2 x̂ W, d = x̂ · u.

    Attributes:
        weight: W (d × c), times the scale of F.
        total: u = B Bᵀ Σ_j x̂_j (d), summed over the training rows.
        eigenvalues: The eigenvalues of G (c), descending; zero beyond the rank.
        signed: Whether a training row has a negative entry.
        magnitude: What the training rows were divided by (see :class:`~gcnsl.spectral.rows.Rows`).
        anchor_numbers: Row numbers of the anchors (m); None for ESC.
        anchors: These rows (m × d), whose unit vectors are the columns of B; None for ESC.
    """

    weight: Tensor
    total: Tensor
    eigenvalues: Tensor
    signed: bool
    magnitude: float
    anchor_numbers: Tensor | None
    anchors: Rows | None

    def __call__(self, rows: Rows) -> Tensor:
        """Features (n × c) of any rows."""
        with threads_for(rows.work(len(self.eigenvalues))):
            # Cosines do not depend on the scale of a row; inner products need that of the training rows.
            rows = rows.divided(self.magnitude if self.anchors is None else rows.magnitude)
            basis = Basis(self.anchors)
            unit = _unit_scale(rows, basis)
            bounded = torch.ones_like(unit, dtype=torch.bool) if self.signed else rows.negative_rows()
            return _project(rows, unit * inverse_sqrt(_degrees(rows, basis, unit, self.total, bounded)), self.weight)

    def state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """Plain values for JSON, and tensors."""
        tensors = {"weight": self.weight, "total": self.total, "eigenvalues": self.eigenvalues}
        if self.anchor_numbers is not None:
            tensors["anchors"] = self.anchor_numbers
        return {"signed_": self.signed}, tensors

    @classmethod
    def from_state(
        cls, plain: Mapping[str, Any], tensors: Mapping[str, Tensor], rows: Rows, count: int, *, anchored: bool
    ) -> LinearMap:
        """The map with this state and c components, which was fitted to these rows."""
        n, d = rows.shape
        if not isinstance(plain["signed_"], bool):
            raise ValueError(f"signed_ ({plain['signed_']!r}) is not a boolean")
        numbers = tensors["anchors"].cpu() if anchored else None
        if numbers is not None:
            lowest, highest = numbers.aminmax()
            if numbers.dtype != torch.int64 or numbers.ndim != 1 or lowest < 0 or highest >= n:
                raise ValueError(f"anchors are not row numbers of a matrix with {n} rows")
        shapes = {"weight": (d, count), "total": (d,), "eigenvalues": (count,)}
        weight, total, eigenvalues = restored(tensors, shapes, rows.device)
        anchors = None if numbers is None else rows.divided(rows.magnitude).take(numbers.to(rows.device))
        return cls(weight, total, eigenvalues, plain["signed_"], rows.magnitude, numbers, anchors)


def fit_esc(
    rows: Rows, n_components: int, *, anchor_numbers: Tensor | None = None, scale: Scale
) -> tuple[Tensor, LinearMap]:
    """F of the training rows, and the map that extends it to other rows; without anchors (ESC) or with (ESC-ANCH)."""
    count, factor = check_whole("n_components", n_components, least=1), scale_factor(scale, rows.shape[0])
    with threads_for(rows.work(count)):
        magnitude = rows.magnitude
        rows = rows.divided(magnitude)
        anchors = None if anchor_numbers is None else rows.take(anchor_numbers.to(rows.device))
        basis = Basis(anchors)
        unit = _unit_scale(rows, basis)
        total = basis.expand(basis.contract(rows.t_matmul(unit[:, None])))[:, 0]
        signed = rows.negative_rows().any()
        row_scale = unit * inverse_sqrt(_degrees(rows, basis, unit, total, signed.expand(rows.shape[0])))
        eigenvalues, weight = decompose(rows, row_scale, basis, count)
        weight = padded(weight, count)
        features = _project(rows, row_scale, weight)
        signs = column_signs(features) * factor
        features *= signs.to(features.dtype)
        # The layout decides how products are rounded: a map restored from a file is contiguous, so this one is, too.
        weight, eigenvalues = (weight * signs).contiguous(), padded(eigenvalues, count)
    return features, LinearMap(weight, total, eigenvalues, bool(signed), magnitude, anchor_numbers, anchors)


def _unit_scale(rows: Rows, basis: Basis) -> Tensor:
    """The factors x̂ / x (n): 1 for inner products, 1 / ‖x‖ for cosines (0 for a zero row)."""
    if basis.anchors is None:
        return torch.ones(rows.shape[0], dtype=torch.float64, device=rows.device)
    return inverse_sqrt(rows.squared_norms())


def _degrees(rows: Rows, basis: Basis, unit: Tensor, total: Tensor, bounded: Tensor) -> Tensor:
    """Degrees d = x̂ · u (n), raised to at least s_ii = ‖r_i‖² in the rows ``bounded``.

    Without negative features, the sum Σ_j s_ij is never below its term s_ii. With them it can be, and even be negative,
    so the bound is enforced.
    """
    degree = unit * rows.matmul(total[:, None])[:, 0]
    if not bool(bounded.any()):
        return degree
    return torch.where(bounded, torch.maximum(degree, unit.square() * basis.squared_norms(rows)), degree)


def _project(rows: Rows, row_scale: Tensor, weight: Tensor) -> Tensor:
    """F = diag(row_scale) X W, block by block, in X's dtype."""
    features = torch.empty(rows.shape[0], weight.shape[1], dtype=rows.dtype, device=rows.device)
    for part in rows.slices(weight.shape[1]):
        features[part] = row_scale[part, None] * (rows.block(part) @ weight)
    return features
