"""The spectral features as a scikit-learn transformer."""

from __future__ import annotations

from typing import Any, Literal, get_args

from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor
from typing_extensions import Self

from gcnsl.errors import InputError
from gcnsl.spectral.conventions import Scale
from gcnsl.spectral.gaussian import GaussianMap, fit_sc
from gcnsl.spectral.linear import LinearMap, choose_anchors, fit_esc, fit_esc_anch
from gcnsl.spectral.reading import as_rows
from gcnsl.spectral.rows import Rows

Method = Literal["sc", "esc", "esc-anch"]


class SpectralFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Spectral features F of the rows of X (section 3.1 of the paper).

    F holds the c leading eigenvectors of G = D^-1/2 S D^-1/2, D the degrees of the similarity S:

    - ``"sc"``: S_ij = exp(-‖x_i - x_j‖² / 2σ²), the classical method, O(n²);
    - ``"esc"``: S = X Xᵀ, never formed: F are the left singular vectors of D^-1/2 X;
    - ``"esc-anch"``: S = R Rᵀ, R (n × m) the cosines to m random rows, the anchors; neither is formed.

    The subspace is exact to about 1e-7 (and to rounding / gap); work is in float64 whatever X's dtype.

    Args:
        method: which of the three.
        n_components: c.
        n_anchors: m, for ``"esc-anch"``; at least c. With m ≥ n every row is an anchor.
        sigma: σ, for ``"sc"``; None takes the median distance between rows.
        scale: ``"unit"``: the columns of F are unit vectors; ``"sqrt-n"``: those times √n, so that entries are around
            one at any n.
        random_state: seed of the choice of anchors, the only thing that is random.

    Attributes:
        eigenvalues_: the c largest eigenvalues of G, falling; they are at most 1 where no feature is negative.
        singular_values_: their roots, for ESC and ESC-ANCH the singular values of P = D^-1/2 X or D^-1/2 R.
        anchors_: the anchors' row numbers (``"esc-anch"`` only).
        sigma_: the σ in use (``"sc"`` only).
        extension_: the map that gives the features of any row.

    Cases that the formulas leave open:

    - *Zero rows* are alike to no row: their features are zero (ESC, ESC-ANCH), as are those of a row that shares no
      feature with any anchor, and of every row if X is zero.
    - *Negative features* can make a degree Σ_j s_ij zero or negative. Where a feature is negative a degree is therefore
      at least s_ii, a bound that holds by itself where none is.
    - *Rank*: columns of F whose eigenvalue is below 1e-10 of the largest are zero. So are those beyond the n-th or, for
      constant features or a single row, all but the first; F always has c columns.
    - *Signs*: in every column the entry of largest magnitude is positive (the first one, up to a relative 1e-6).
    - *Ties*: eigenvectors of equal eigenvalues are determined up to a rotation. The same input gives the same ones.
    - *Bits*: the same input and seed give the same bits; on a GPU, CSR input gives the same up to rounding, because its
      products there are summed in no fixed order.

    X is dense or CSR (never made dense), NumPy, SciPy or torch, on the CPU or a GPU; F is of the same kind, dtype and
    device. Memory above X and F stays under 1 GB for a million rows (not for ``"sc"``, which keeps S up to 4 GB).

    >>> X = [[2, 1], [2, 1], [1, 2], [1, 2]]
    >>> SpectralFeatures("esc", n_components=2).fit_transform(X).round(3)
    array([[ 0.5,  0.5],
           [ 0.5,  0.5],
           [ 0.5, -0.5],
           [ 0.5, -0.5]])
    """

    def __init__(
        self,
        method: Method = "esc-anch",
        *,
        n_components: int = 32,
        n_anchors: int = 500,
        sigma: float | None = None,
        scale: Scale = "unit",
        random_state: Any = None,
    ) -> None:
        self.method = method
        self.n_components = n_components
        self.n_anchors = n_anchors
        self.sigma = sigma
        self.scale = scale
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the map from the rows of X."""
        self._fit(X)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Learn the map from the rows of X and return their features F (n × c)."""
        rows, features = self._fit(X)
        return rows.deliver(features)

    def transform(self, X: Any) -> Any:
        """Return the features of rows seen or not: for the training rows, those of ``fit_transform``."""
        check_is_fitted(self)
        rows = self._rows(X, reset=False)
        device = self.extension_.weight.device
        if rows.device != device:
            raise InputError(f"X is on {rows.device}, but SpectralFeatures was fitted on {device}: move X there")
        return rows.deliver(self.extension_(rows))

    def _fit(self, X: Any) -> tuple[Rows, Tensor]:
        rows = self._rows(X, reset=True)
        self.extension_: LinearMap | GaussianMap
        if self.method == "sc":
            features, self.extension_ = fit_sc(rows, self.n_components, sigma=self.sigma, scale=self.scale)
            self.sigma_ = self.extension_.sigma
        elif self.method == "esc":
            features, self.extension_ = fit_esc(rows, self.n_components, scale=self.scale)
        elif self.method == "esc-anch":
            anchors = choose_anchors(rows.shape[0], self.n_components, self.n_anchors, random_state=self.random_state)
            features, self.extension_ = fit_esc_anch(rows, self.n_components, anchors, scale=self.scale)
            self.anchors_ = anchors.numpy()
        else:
            raise InputError(f"method({self.method!r}) must be one of {get_args(Method)}")
        self.eigenvalues_ = self.extension_.eigenvalues.cpu().numpy()
        self.singular_values_ = self.eigenvalues_**0.5
        self._n_features_out = features.shape[1]
        return rows, features

    def _rows(self, X: Any, *, reset: bool) -> Rows:
        """Check X as scikit-learn does, or, for a tensor, as this package does."""
        if not isinstance(X, Tensor):
            return as_rows(validate_data(self, X, reset=reset, accept_sparse="csr", dtype=["float64", "float32"]))
        rows = as_rows(X)
        if reset:
            self.n_features_in_ = rows.shape[1]
        elif rows.shape[1] != self.n_features_in_:
            raise InputError(
                f"X has {rows.shape[1]} features, but SpectralFeatures was fitted to {self.n_features_in_}"
            )
        return rows

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
