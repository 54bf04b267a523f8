"""Spectral features as a scikit-learn transformer and as a transform of PyTorch Geometric."""

import math
from collections.abc import Mapping
from numbers import Integral
from typing import Any, Literal, get_args

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform
from typing_extensions import Self

from gcnsl.checks import check_choice, check_generator, check_number, check_whole
from gcnsl.errors import ArgumentError, InputError, InputTypeError
from gcnsl.execution import threads_for, torch_threads_for
from gcnsl.sparse import SPARSE_SHARE, to_scipy
from gcnsl.spectral.maps import GaussianMap, Ints, LinearMap, fit_esc, fit_sc

Method = Literal["sc", "esc", "esc-anch"]
Scale = Literal["unit", "sqrt-n"]

_ARRAYS, _STORED = ("weight", "eigenvalues", "total", "anchors"), {"sigma": "relative_sigma_", "signed": "signed_"}
"""What a map is stored by, and the names of its plain values in files."""
_ORDINARY = 1e-60, 1e60
"""Products of up to four entries within these bounds neither overflow nor vanish in float64."""


class SpectralFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Spectral features F of the rows of X (section 3.1 of the paper).

    F holds the c leading eigenvectors of G = D^-1/2 S D^-1/2, where D holds the row sums of the similarity S:

    - ``"sc"``: S_ij = exp(-‖x_i - x_j‖² / 2σ²), the classical method, O(n²);
    - ``"esc"``: S = X Xᵀ, never formed: F holds the left singular vectors of D^-1/2 X;
    - ``"esc-anch"``: S = R Rᵀ, where R (n × m) holds the cosines to m random rows, the anchors; neither is formed.

    X is dense or CSR (never made dense), of NumPy, SciPy or torch. F is an array or a tensor as X is, with its dtype
    and device. All computations are in float64 and on the CPU. The subspace is exact to 1e-10 of the c-th eigenvalue
    divided by its gap to the next.

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

    ESC and ESC-ANCH need memory for X twice in float64 and for at most as much again. ``"sc"`` needs all of S, which
    may have at most 4 GiB (23,170 rows).

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
        self.fit_transform(X)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Learn the map from the rows of X and return their features F (n × c)."""
        x, kind = self._read(X, reset=True)
        c, n = check_whole("n_components", self.n_components, least=1), x.shape[0]
        factor = math.sqrt(n) if check_choice("scale", self.scale, get_args(Scale)) == "sqrt-n" else 1.0
        extension: LinearMap | GaussianMap
        with threads_for(_work(x, c, self.method, n)):
            if check_choice("method", self.method, get_args(Method)) == "sc":
                sigma = None if self.sigma is None else check_number("sigma", self.sigma, above=0)
                features, extension = fit_sc(x, c, sigma=sigma, factor=factor)
            else:
                anchors = self._draw_anchors(n) if self.method == "esc-anch" else None
                features, extension = fit_esc(x, c, anchors=anchors, factor=factor)
        self._set_extension(extension)
        return _as_kind(features, kind)

    def transform(self, X: Any) -> Any:
        """Return the features of any rows; for the training rows, these are the result of ``fit_transform``."""
        check_is_fitted(self)
        x, kind = self._read(X, reset=False)
        weight = self.extension_.weight
        with threads_for(_work(x, weight.shape[1], self.method, len(weight))):
            return _as_kind(self.extension_(x), kind)

    def state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """The parameters and what was learned, as plain values for JSON and tensors by name.

        The training rows are not included: :meth:`from_state` takes them again. A ``random_state`` that is not an
        integer is stored as None.
        """
        check_is_fitted(self)
        learned, names = vars(self.extension_), getattr(self, "feature_names_in_", None)
        plain = {k: value.item() if isinstance(value, np.generic) else value for k, value in self.get_params().items()}
        plain["random_state"] = plain["random_state"] if isinstance(self.random_state, Integral) else None
        plain["feature_names_in_"] = None if names is None else names.tolist()
        plain |= {stored: learned[name] for name, stored in _STORED.items() if name in learned}
        arrays = {name: learned[name] for name in _ARRAYS if name in learned}
        return plain, {name: torch.from_numpy(array) for name, array in arrays.items() if array is not None}

    @classmethod
    def from_state(cls, plain: Mapping[str, Any], tensors: Mapping[str, Tensor], X: Any) -> Self:
        """The transformer with this state, which was fitted to X (n × d); its ``transform`` gives the same bits."""
        transformer = cls(**{name: plain[name] for name in cls._get_param_names()})
        x, _ = transformer._read(X, reset=True)
        learned: dict[str, Any] = {name: tensors[name].numpy() for name in _ARRAYS if name in tensors}
        learned |= {name: plain[stored] for name, stored in _STORED.items() if stored in plain}
        extension = GaussianMap(training=x, **learned) if transformer.method == "sc" else LinearMap.of(x, **learned)
        transformer._set_extension(extension)
        if plain["feature_names_in_"] is not None:
            transformer.feature_names_in_ = np.array(plain["feature_names_in_"], dtype=object)
        return transformer

    def _draw_anchors(self, n: int) -> Ints:
        """Draw m of n row numbers without replacement, in ascending order; all of them if m ≥ n."""
        c, m = self.n_components, check_whole("n_anchors", self.n_anchors, least=1)
        if c > m:
            rule = f"must be <= n_anchors({m}), the largest possible rank: use more anchors or fewer components"
            raise ArgumentError("n_components", c, rule)
        generator = check_generator(self.random_state)
        return np.arange(n) if m >= n else np.sort(generator.choice(n, m, replace=False))

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
        elif extension.anchors is not None:
            self.anchors_ = extension.anchors

    def _read(self, X: Any, *, reset: bool) -> tuple[Any, Any]:
        """X as a float64 array or CSR matrix, and an empty array or tensor of the kind in which features are returned.

        It is CSR with distinct entries if it is sparse, or if most entries are zero, as in a bag of words.
        """
        kind: Any = None
        if isinstance(X, Tensor):
            dtype = X.dtype if X.is_floating_point() else torch.get_default_dtype()
            kind = torch.empty(0, dtype=dtype, device=X.device)
            with torch_threads_for(X.numel()):
                X = X.detach().to("cpu", torch.promote_types(X.dtype, torch.float32))
                X = X.numpy() if X.layout == torch.strided else to_scipy(X)
        try:
            X = validate_data(self, X, reset=reset, accept_sparse="csr", dtype=["float64", "float32"])
        except (TypeError, ValueError) as error:
            refusal = InputTypeError if isinstance(error, TypeError) else InputError
            raise refusal(str(error)) from error
        x = _csr_if_sparse(X).astype(np.float64, copy=False)
        _check_magnitude(x.data if sp.issparse(x) else x)
        return x, np.empty(0, X.dtype) if kind is None else kind

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class AddSpectralFeatures(BaseTransform):  # type: ignore[misc]
    """Add the spectral features F of the nodes (n × c) to a graph, computed from its ``x``.

    It can stand in :class:`torch_geometric.transforms.Compose` and in a dataset's ``pre_transform``. A sparse ``x`` is
    never made dense.

    Args:
        n_components: Number of features per node (c).
        attr_name: Name of the attribute for F; ``None`` to put F beside a dense ``x`` instead.
        scale: ``"sqrt-n"`` for entries of about one, as networks like them, or ``"unit"`` for unit columns.
        random_state: Seed of ESC-ANCH's anchors.
        options: Further arguments of :class:`SpectralFeatures`, such as ``method`` and ``n_anchors``.

    >>> data = AddSpectralFeatures(2)(Data(x=torch.eye(4) + 1))
    >>> data.spectral.shape
    torch.Size([4, 2])
    """

    def __init__(
        self,
        n_components: int = 25,
        *,
        attr_name: str | None = "spectral",
        scale: Scale = "sqrt-n",
        random_state: Any = 0,
        **options: Any,
    ) -> None:
        self.attr_name = attr_name
        self.features = SpectralFeatures(n_components=n_components, scale=scale, random_state=random_state, **options)

    def forward(self, data: Data) -> Data:
        """The graph with F."""
        x = data.x
        if x is None:
            raise InputError("data has no x, from which spectral features are computed")
        if self.attr_name is None and x.layout != torch.strided:
            raise InputError("data.x is sparse: name an attribute for the spectral features, attr_name='spectral'")
        spectral = self.features.fit_transform(x)
        if self.attr_name is None:
            data.x = torch.cat([x, spectral.to(x.dtype)], dim=1)
        else:
            data[self.attr_name] = spectral
        return data

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.features.n_components})"


def _work(x: Any, count: int, method: str, rows: int) -> int:
    """The multiply-adds that ``count`` components take, roughly; SC compares each row with so many others."""
    entries = int(x.nnz if sp.issparse(x) else x.size)
    return x.shape[0] * rows * (x.shape[1] + 4 * count + 64) if method == "sc" else 2 * entries * (4 * count + 64)


def _as_kind(features: NDArray[np.float64], kind: Any) -> Any:
    """Features as an array or a tensor with the dtype and on the device of another one."""
    return torch.from_numpy(features).to(kind) if isinstance(kind, Tensor) else features.astype(kind.dtype, copy=False)


def _csr_if_sparse(x: Any) -> Any:
    """A CSR matrix with distinct entries if few entries are not zero, else the array."""
    if sp.issparse(x):
        x = sp.csr_array(x)
        if not x.has_canonical_format:  # the caller's matrix is not changed
            x = x.copy()
            x.sum_duplicates()
        return x
    return x if np.count_nonzero(x) > SPARSE_SHARE * x.size else sp.csr_array(x)


def _check_magnitude(values: NDArray[np.float64]) -> None:
    """Check that the squares of entries neither overflow nor vanish."""
    largest = float(max(values.max(), -values.min())) if values.size else 0.0
    if largest and not _ORDINARY[0] <= largest <= _ORDINARY[1]:
        raise InputError(
            f"X has entries up to {largest:.1e}, which must be between 1e-60 and 1e60, since they are squared: "
            f"divide X by {largest:.1e}"
        )
