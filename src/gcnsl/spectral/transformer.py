"""Spectral features as a scikit-learn transformer."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor
from typing_extensions import Self

from gcnsl.checks import check_choice
from gcnsl.errors import InputError, InputTypeError
from gcnsl.spectral.eigen import Scale
from gcnsl.spectral.esc import LinearMap, choose_anchors, fit_esc
from gcnsl.spectral.gaussian import GaussianMap, fit_sc
from gcnsl.spectral.rows import Rows, as_rows

Method = Literal["sc", "esc", "esc-anch"]


class SpectralFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Spectral features F of the rows of X (section 3.1 of the paper).

    F holds the c leading eigenvectors of G = D^-1/2 S D^-1/2, where D holds the row sums of the similarity S:

    - ``"sc"``: S_ij = exp(-‖x_i - x_j‖² / 2σ²), the classical method, O(n²);
    - ``"esc"``: S = X Xᵀ, never formed: F holds the left singular vectors of D^-1/2 X;
    - ``"esc-anch"``: S = R Rᵀ, where R (n × m) holds the cosines to m random rows, the anchors; neither is formed.

    X is dense or CSR (never made dense), of NumPy, SciPy or torch. F is an array or a tensor as X is, with its dtype
    and device. All computations are in float64 and on the CPU. The subspace is exact to the rounding error divided by
    the gap between the c-th and the next eigenvalue.

    Args:
        method: One of the three.
        n_components: Number of components (c).
        n_anchors: Number of anchors (m), at least c; only for ``"esc-anch"``. If m ≥ n, every row is an anchor.
        sigma: Width of the Gaussian (σ), only for ``"sc"``. None for the median distance between (at most 1000) rows.
        scale: ``"unit"`` for unit columns; ``"sqrt-n"`` for these times √n, with entries of about one for any n.
        random_state: Seed or ``numpy.random.RandomState`` for the choice of anchors. Nothing else is random.

    Attributes:
        eigenvalues_: The c largest eigenvalues of G, descending; at most 1 if no feature is negative.
        singular_values_: Their square roots, for ESC and ESC-ANCH the singular values of D^-1/2 X or D^-1/2 R.
        anchors_: Row numbers of the anchors (``"esc-anch"`` only).
        sigma_: The σ in use (``"sc"`` only).
        extension_: The map that gives the features of any row.

    Special cases:

    - *Zero rows* are similar to no row, so their features are zero (ESC, ESC-ANCH). So are the features of a row that
      has no feature in common with any anchor.
    - *Negative features* can make a degree Σ_j s_ij zero or negative. If any feature is negative, degrees are therefore
      raised to at least s_ii; without negative features they are never below it.
    - *Rank*: columns of F with an eigenvalue below 1e-10 of the largest are zero, and so are those beyond the n-th. F
      always has c columns.
    - *Signs*: in every column the entry of largest magnitude is positive (the first of them, up to a relative 1e-6).
    - *Ties*: eigenvectors of equal eigenvalues are determined only up to a rotation.
    - *Magnitude*: the entry of largest magnitude must be between 1e-60 and 1e60, unless all are zero.
    - *Reproducibility*: the same input and seed give the same bits.

    For a million rows the memory needed besides X, F and a float64 copy of a sparse X is below 1 GB. ``"sc"`` needs
    all of S, which may have at most 4 GiB (23,170 rows).

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
        """Return the features of any rows; for the training rows, these are the result of ``fit_transform``."""
        check_is_fitted(self)
        rows = self._rows(X, reset=False)
        return rows.deliver(self.extension_(rows))

    def state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """The parameters and what was learned, as plain values for JSON and tensors by name.

        The training rows are not included: :meth:`from_state` takes them again. A ``random_state`` that is not an
        integer is stored as None.
        """
        check_is_fitted(self)
        plain, tensors = self.extension_.state()
        parameters = {name: getattr(self, name) for name in self._get_param_names()}
        if not isinstance(self.random_state, Integral):
            parameters["random_state"] = None
        plain |= {name: value.item() if isinstance(value, np.generic) else value for name, value in parameters.items()}
        names = getattr(self, "feature_names_in_", None)
        return {**plain, "feature_names_in_": None if names is None else names.tolist()}, tensors

    @classmethod
    def from_state(cls, plain: Mapping[str, Any], tensors: Mapping[str, Tensor], X: Any) -> Self:
        """The transformer with this state, which was fitted to X (n × d); its ``transform`` gives the same bits."""
        transformer = cls(**{name: plain[name] for name in cls._get_param_names()})
        rows, anchored = as_rows(X), transformer.method == "esc-anch"
        if transformer.method == "sc":
            transformer._set_extension(GaussianMap.from_state(plain, tensors, rows))
        else:
            transformer._set_extension(LinearMap.from_state(plain, tensors, rows, anchored=anchored))
        transformer.n_features_in_ = rows.shape[1]
        names = plain["feature_names_in_"]
        if names is not None:
            transformer.feature_names_in_ = np.array(names, dtype=object)
        return transformer

    def _fit(self, X: Any) -> tuple[Rows, NDArray[Any]]:
        rows = self._rows(X, reset=True)
        extension: LinearMap | GaussianMap
        if check_choice("method", self.method, get_args(Method)) == "sc":
            features, extension = fit_sc(rows, self.n_components, sigma=self.sigma, scale=self.scale)
        else:
            n, c, m = rows.shape[0], self.n_components, self.n_anchors
            anchors = choose_anchors(n, c, m, random_state=self.random_state) if self.method == "esc-anch" else None
            features, extension = fit_esc(rows, c, anchor_numbers=anchors, scale=self.scale)
        self._set_extension(extension)
        return rows, features

    def _set_extension(self, extension: LinearMap | GaussianMap) -> None:
        """Set the map and the attributes that are read from it."""
        self.extension_ = extension
        self.eigenvalues_ = extension.eigenvalues
        self.singular_values_ = self.eigenvalues_**0.5
        self._n_features_out = len(self.eigenvalues_)
        for name in ("sigma_", "anchors_"):  # of an earlier fit with another method
            self.__dict__.pop(name, None)
        if isinstance(extension, GaussianMap):
            self.sigma_ = extension.sigma
        elif extension.anchor_numbers is not None:
            self.anchors_ = extension.anchor_numbers

    def _rows(self, X: Any, *, reset: bool) -> Rows:
        """Check X as scikit-learn does or, if it is a tensor, as this package does."""
        if not isinstance(X, Tensor):
            try:
                X = validate_data(self, X, reset=reset, accept_sparse="csr", dtype=["float64", "float32"])
            except (TypeError, ValueError) as error:
                refusal = InputTypeError if isinstance(error, TypeError) else InputError
                raise refusal(str(error)) from error
            return as_rows(X)
        rows = as_rows(X)
        if reset:
            self.n_features_in_ = rows.shape[1]
            self.__dict__.pop("feature_names_in_", None)
        elif rows.shape[1] != self.n_features_in_:
            raise InputError(f"X has {rows.shape[1]} features, but SpectralFeatures expects {self.n_features_in_}")
        return rows

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
