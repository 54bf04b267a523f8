"""Features of the nodes of a graph that has none: their degrees, and where they lie in the graph."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch
from scipy.sparse.linalg import LinearOperator
from sklearn.utils.extmath import randomized_svd
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

from gcnsl.spectral.eigen import column_signs, inverse, inverse_sqrt, leading_eigenpairs

COMPONENTS = 32
"""Number of eigenvectors (c)."""
EXACT_NODES, POWERS = 50_000, 7
"""In graphs with more nodes, so many power iterations find the eigenvectors that stand out; the others, whose
eigenvalues lie close together, would take thousands of products."""
_FITTED = WeakIdKeyDictionary()
"""What was found for each edge_index in use: many methods read the same graph, and eigenvectors take long."""
FEATURE_NAMES = ("log degree", "mean log degree of neighbours", *(f"eigenvector {k + 1}" for k in range(COMPONENTS)))


@dataclass(frozen=True)
class StructuralFeatures:
    r"""Degrees and a spectral embedding of the adjacency matrix, extended to new nodes.

    With :math:`\hat A = D^{-1/2} A D^{-1/2}`, A without loops, and the c eigenpairs of :math:`\hat A` with the largest
    :math:`|\lambda|`, found as those of :math:`\hat A^2 U = U \Lambda`, a node has the features

    .. math:: \log(1 + d_i), \quad \operatorname{mean}_{j \sim i} \log(1 + d_j), \quad (\hat A W)_i,
        \qquad W = \sqrt n \, \hat A U \Lambda^{-1},

    so that the last c columns of the training nodes are :math:`\sqrt n \, U`. Eigenvalues near -1 count as much as
    those near 1: they belong to groups that link to each other rather than among themselves. The formula also holds for
    a new node, of which only the edges to training nodes count; training nodes keep their features.

    Attributes:
        features: Those of the training nodes (n × (c + 2), float64).
        log_degree: log(1 + d) of the training nodes (n).
        weight: D^-1/2 W (n × c).
    """

    features: Tensor
    log_degree: Tensor
    weight: Tensor

    @classmethod
    def fit(cls, edge_index: Tensor, num_nodes: int) -> StructuralFeatures:
        """The features of a graph's nodes; ``edge_index`` (2 × E) holds each edge in both directions."""
        version, found = _FITTED.get(edge_index, (None, None))  # type: ignore[no-untyped-call]
        if version == (num_nodes, edge_index._version):
            return found  # type: ignore[no-any-return]
        links = _links(edge_index, num_nodes, num_nodes)
        degree = links.sum(axis=1)
        root = inverse_sqrt(degree)[:, None]
        normalised = sp.csr_array(links.multiply(root).multiply(root.T))
        if num_nodes <= EXACT_NODES:
            square = LinearOperator(normalised.shape, lambda v: normalised @ (normalised @ v), dtype=np.float64)
            values, vectors = leading_eigenpairs(square, COMPONENTS)
        else:
            vectors, singular, _ = randomized_svd(normalised, COMPONENTS, n_iter=POWERS, random_state=0)
            values = singular**2
        vectors = vectors * column_signs(vectors)
        weight = torch.from_numpy(root * (normalised @ vectors) * (num_nodes**0.5 * inverse(values)))
        log_degree = torch.from_numpy(np.log1p(degree))
        found = cls(_features(links, log_degree, weight), log_degree, weight)
        _FITTED[edge_index] = (num_nodes, edge_index._version), found
        return found

    def of(self, edge_index: Tensor, num_nodes: int) -> Tensor:
        """The features of a graph whose first nodes are those of the training graph (num_nodes × (c + 2), float32)."""
        known = len(self.weight)
        new = _features(_links(edge_index, num_nodes, known)[known:], self.log_degree, self.weight)
        return torch.cat([self.features, new]).float()

    def state(self) -> dict[str, Tensor]:
        """What was learned, as tensors by name."""
        return dict(vars(self))

    @classmethod
    def from_state(cls, tensors: dict[str, Tensor]) -> StructuralFeatures:
        """The features with this state."""
        return cls(tensors["features"], tensors["log_degree"], tensors["weight"])


def _features(links: sp.csr_array, log_degree: Tensor, weight: Tensor) -> Tensor:
    """The features of nodes with these links to the training nodes (k × n)."""
    degree = torch.from_numpy(links.sum(axis=1))[:, None]
    once = degree.clamp(min=1)
    around = torch.from_numpy(links @ np.column_stack([log_degree.numpy(), weight.numpy()]))
    return torch.cat([degree.log1p(), around[:, :1] / once, around[:, 1:] * once**-0.5], dim=1)


def _links(edge_index: Tensor, num_rows: int, num_columns: int) -> sp.csr_array:
    """A without loops, of which only the first columns are kept (float64)."""
    source, target = edge_index.numpy()
    kept = (source != target) & (target < num_columns)
    ones = np.ones(np.count_nonzero(kept))
    return sp.csr_array((ones, (source[kept], target[kept])), shape=(num_rows, num_columns))
