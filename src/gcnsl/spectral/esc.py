"""ESC and ESC-ANCH: spectral features whose similarity is an inner product, so that S is never formed.

Both follow the same formula. With x̂ the row of a node and B a matrix,

    r = x̂ B        S = R Rᵀ        d_i = Σ_j s_ij = r_i · Σ_j r_j        P = D^-1/2 R = U Σ Vᵀ        F = U.

ESC has x̂ = x and B = I. ESC-ANCH has x̂ = x / ‖x‖ and B = Âᵀ, the m anchors as unit columns, so R holds cosines. With
W = B V Σ⁻¹, the features of any row, of the training data or not, are

    f = d^-1/2 x̂ W        where d = x̂ · B Bᵀ Σ_j x̂_j.

R is never formed either: products with P are products with X and with the anchors. V and Σ come from
the smaller of PᵀP and PPᵀ.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gcnsl.checks import check_generator, check_whole
from gcnsl.errors import ArgumentError
from gcnsl.execution import threads_for
from gcnsl.spectral.eigen import (
    Floats,
    Scale,
    column_signs,
    direct_size,
    inverse,
    inverse_sqrt,
    leading_eigenpairs,
    operator,
    scale_factor,
)
from gcnsl.spectral.rows import Rows, as_rows

Ints = NDArray[np.int64]


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


def choose_anchors(n: int, n_components: int, n_anchors: int, *, random_state: Any) -> Ints:
    """Draw m of n row numbers without replacement, in ascending order; all of them if m ≥ n."""
    if check_whole("n_components", n_components, least=1) > check_whole("n_anchors", n_anchors, least=1):
        rule = f"must be <= n_anchors({n_anchors}), the largest possible rank: use more anchors or fewer components"
        raise ArgumentError("n_components", n_components, rule)
    if n_anchors >= n:
        return np.arange(n)
    return np.sort(check_generator(random_state).choice(n, n_anchors, replace=False))


@dataclass(frozen=True)
class LinearMap:
    """x ↦ f = d^-1/2 x̂ W, d = x̂ · u.

    Attributes:
        weight: W (d × c), times the scale of F.
        total: u = B Bᵀ Σ_j x̂_j (d), summed over the training rows.
        eigenvalues: The eigenvalues of G (c), descending; zero beyond the rank.
        signed: Whether a training row has a negative entry.
        anchor_numbers: Row numbers of the anchors (m); None for ESC.
        basis: B.
    """

    weight: Floats
    total: Floats
    eigenvalues: Floats
    signed: bool
    anchor_numbers: Ints | None
    basis: Basis

    def __call__(self, rows: Rows) -> NDArray[Any]:
        """Features (n × c) of any rows."""
        with threads_for(rows.work(len(self.eigenvalues))):
            unit = self.basis.unit_scale(rows)
            bounded = np.ones(len(unit), bool) if self.signed else rows.negative_rows()
            degree = _degrees(rows, self.basis, unit, self.total, bounded)
            return _project(rows, unit * inverse_sqrt(degree), self.weight)

    def state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """Plain values for JSON, and tensors."""
        arrays: dict[str, NDArray[Any]] = {"weight": self.weight, "total": self.total, "eigenvalues": self.eigenvalues}
        if self.anchor_numbers is not None:
            arrays["anchors"] = self.anchor_numbers
        return {"signed_": self.signed}, {name: torch.from_numpy(array) for name, array in arrays.items()}

    @classmethod
    def from_state(
        cls, plain: Mapping[str, Any], tensors: Mapping[str, Tensor], rows: Rows, *, anchored: bool
    ) -> LinearMap:
        """The map with this state, which was fitted to these rows."""
        numbers = tensors["anchors"].numpy() if anchored else None
        weight, total, eigenvalues = (tensors[name].numpy() for name in ("weight", "total", "eigenvalues"))
        return cls(weight, total, eigenvalues, plain["signed_"], numbers, Basis.of(rows, numbers))


def fit_esc(
    rows: Rows, n_components: int, *, anchor_numbers: Ints | None = None, scale: Scale
) -> tuple[NDArray[Any], LinearMap]:
    """F of the training rows, and the map that extends it to other rows; without anchors (ESC) or with (ESC-ANCH)."""
    count, factor = check_whole("n_components", n_components, least=1), scale_factor(scale, rows.shape[0])
    with threads_for(rows.work(count)):
        basis = Basis.of(rows, anchor_numbers)
        unit = basis.unit_scale(rows)
        total = basis.expand(basis.contract(rows.t_matmul(unit[:, None])))[:, 0]
        signed = bool(rows.negative_rows().any())
        row_scale = unit * inverse_sqrt(_degrees(rows, basis, unit, total, np.full(len(unit), signed)))
        eigenvalues, weight = _decompose(rows, row_scale, basis, count)
        features = _project(rows, row_scale, weight)
        signs = column_signs(features) * factor
        features *= signs.astype(features.dtype)
        # The layout decides how products are rounded: a map restored from a file is contiguous, so this one is, too.
        weight = np.ascontiguousarray(weight * signs)
    return features, LinearMap(weight, total, eigenvalues, signed, anchor_numbers, basis)


@dataclass(frozen=True)
class Basis:
    """B (d × m): the anchors as unit columns, or the identity (None) if there are no anchors."""

    matrix: Any = None

    @classmethod
    def of(cls, rows: Rows, anchor_numbers: Ints | None) -> Basis:
        """The basis of these anchors."""
        if anchor_numbers is None:
            return cls()
        anchors = rows.take(anchor_numbers)
        scale = inverse_sqrt(anchors.squared_norms())[:, None]
        return cls((anchors.x.multiply(scale).tocsr() if anchors.sparse else anchors.x * scale).T)

    def unit_scale(self, rows: Rows) -> Floats:
        """The factors x̂ / x (n): 1 for inner products, 1 / ‖x‖ for cosines (0 for a zero row)."""
        return np.ones(rows.shape[0]) if self.matrix is None else inverse_sqrt(rows.squared_norms())

    def contract(self, features: Floats) -> Floats:
        """Bᵀ · features: (d × k) → (m × k)."""
        return features if self.matrix is None else self.matrix.T @ features

    def expand(self, coefficients: Floats) -> Floats:
        """B · coefficients: (m × k) → (d × k)."""
        return coefficients if self.matrix is None else self.matrix @ coefficients

    def images(self, rows: Rows) -> Iterator[tuple[slice, Floats]]:
        """X B (n × m) as dense row blocks; it is never formed as a whole."""
        for part, block in rows.blocks(rows.shape[1] if self.matrix is None else self.matrix.shape[1]):
            image = block if self.matrix is None else block @ self.matrix
            yield part, image.toarray() if hasattr(image, "toarray") else image


def _decompose(rows: Rows, row_scale: Floats, basis: Basis, count: int) -> tuple[Floats, Floats]:
    """The largest eigenvalues σ² of G, descending, and W = B V Σ⁻¹ (d × c), from the smaller of PᵀP and PPᵀ."""
    scale, (n, d) = row_scale[:, None], rows.shape
    k = d if basis.matrix is None else basis.matrix.shape[1]

    def adjoint(u: Floats) -> Floats:  # B Pᵀ u
        return basis.expand(basis.contract(rows.t_matmul(scale * u)))

    def gram(v: Floats) -> Floats:  # PᵀP v
        return basis.contract(rows.t_matmul(scale**2 * rows.matmul(basis.expand(v))))

    if n < k:
        values, u = leading_eigenpairs(operator(n, lambda u: scale * rows.matmul(adjoint(u))), count)
        return values, adjoint(u) * inverse(values)
    one_pass = not rows.sparse or k <= direct_size(count)  # a dense X would be read for every product
    values, v = leading_eigenpairs(_gram(rows, scale, basis) if one_pass else operator(k, gram), count)
    return values, basis.expand(v) * inverse_sqrt(values)


def _gram(rows: Rows, scale: Floats, basis: Basis) -> Floats:
    """PᵀP (m × m), summed over row blocks."""
    if basis.matrix is not None and rows.shape[1] <= 2 * basis.matrix.shape[1]:
        # Bᵀ (XᵀX) B: the sum over n rows takes d² / 2 multiplications per row instead of dm + m² / 2.
        return basis.contract(basis.contract(_gram(rows, scale, Basis())).T)
    blocks = (scale[part] * image for part, image in basis.images(rows))
    return np.asarray(sum(block.T @ block for block in blocks))


def _degrees(rows: Rows, basis: Basis, unit: Floats, total: Floats, bounded: NDArray[np.bool_]) -> Floats:
    """Degrees d = x̂ · u (n), raised to at least s_ii = ‖r_i‖² in the rows ``bounded``.

    Without negative features, the sum Σ_j s_ij is never below its term s_ii. With them it can be, and even be negative,
    so the bound is enforced.
    """
    degree: Floats = unit * rows.matmul(total[:, None])[:, 0]
    if not bounded.any():
        return degree
    norms = (
        rows.squared_norms()
        if basis.matrix is None
        else np.concatenate([(image**2).sum(axis=1) for _, image in basis.images(rows)])
    )
    return np.where(bounded, np.maximum(degree, unit**2 * norms), degree)


def _project(rows: Rows, row_scale: Floats, weight: Floats) -> NDArray[Any]:
    """F = diag(row_scale) X W, block by block, in X's precision."""
    features = rows.empty(weight.shape[1])
    for part, block in rows.blocks(weight.shape[1]):
        features[part] = row_scale[part, None] * (block @ weight)
    return features
