r"""Reasons for a prediction: a node's own features, and what makes a learned graph join two nodes.

The shares of features are integrated gradients. For the features x of one node, as the model reads them, and f, the
logit of one class minus that of another, feature j is given

.. math::
    a_j = (x_j - b_j) \int_0^1 \frac{\partial f}{\partial x_j}(b + \alpha (x - b)) \, d\alpha, \qquad
    \sum_j a_j = f(x) - f(b),

where everything else is held fixed: the other nodes' features, the graph, spectral features, and the learned graph A*
(but neither the order in which NLGNN lines up the nodes nor an A* over features in GCN-SL+; their jumps are given to no
feature). Since a logit is a logarithm of a probability up to a constant, f and all a_j are log-odds of the first class
against the second. The features b are those of a node that has none: zeros, as the model reads them. Where columns are
standardised, these are the means of the training nodes.

Sundararajan, Taly, Yan: Axiomatic Attribution for Deep Networks. ICML 2017.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gcnsl.methods import Fitted
from gcnsl.nn.gated_branches import ComparedRows
from gcnsl.sparse import SparseMatrix
from gcnsl.structure.structural_features import FEATURE_NAMES

if TYPE_CHECKING:
    from gcnsl.estimator.node_classifier import NodeClassifier

STEPS = 32
SHOWN = 5
"""Number of shared neighbours or features that a similarity is explained by."""


class SparseWithRow:
    """A sparse X (n × d) with another row at one node, as far as models use X: for products and its shape."""

    def __init__(self, x: SparseMatrix, node: int, row: Tensor) -> None:
        self.shape, self._x, self._node, self._row = x.shape, x, node, row

    def __matmul__(self, dense: Tensor) -> Tensor:
        return _with_row(self._x @ dense, self._node, self._row @ dense)

    def __len__(self) -> int:
        return self.shape[0]


def own_features(fitted: Fitted, node: int) -> Tensor:
    """The features of a node as the model reads them (d)."""
    x = fitted.prepared.inputs[0]
    return x[node] if isinstance(x, Tensor) else x.row(node)


def attribute_features(fitted: Fitted, node: int, *, one: int, other: int, steps: int = STEPS) -> NDArray[np.float64]:
    """The share of each feature of a node (d) in the log-odds of class ``one`` against class ``other``.

    The integral is a sum over ``steps`` midpoints; each takes a forward and a backward pass over the whole graph.
    """
    along = _Path(fitted, node, one, other)
    midpoints = (torch.arange(steps, dtype=torch.float64) + 0.5) / steps
    gradient = torch.stack([along.gradient(float(alpha)) for alpha in midpoints]).mean(dim=0)
    shares: NDArray[np.float64] = (gradient * along.row).double().cpu().numpy()
    return shares


class _Path:
    """f on the way from a node without features (α = 0) to the node as it is (α = 1)."""

    def __init__(self, fitted: Fitted, node: int, one: int, other: int) -> None:
        prepared = fitted.prepared
        self._model, (self._x, *self._inputs) = fitted.model, prepared.inputs
        self._node, self._one, self._other = node, one, other
        empty = prepared.method.config.empty_row(self._x.shape[1], seed=prepared.seed)
        self._baseline = empty.to(prepared.device)
        self.row = own_features(fitted, node) - self._baseline
        self._options: dict[str, Any] = {}
        if getattr(self._model, "learns_graph", False) and hasattr(self._model, "directions"):
            self._options["directions"] = self._model.directions(self._x).detach()  # type: ignore[operator]

    def gradient(self, alpha: float) -> Tensor:
        """The derivative of f by the features (d)."""
        row = (self._baseline + alpha * self.row).requires_grad_()
        with torch.enable_grad():
            log_odds = self._log_odds(row)
            if not log_odds.requires_grad:  # the model does not read the features
                return torch.zeros_like(row)
            (gradient,) = torch.autograd.grad(log_odds, row)
        return gradient

    def _log_odds(self, row: Tensor) -> Tensor:
        """f, if the node has these features."""
        x, node = self._x, self._node
        features: Any = _with_row(x, node, row) if isinstance(x, Tensor) else SparseWithRow(x, node, row)
        logits: Tensor = self._model(features, *self._inputs, **self._options)[self._node]
        return logits[self._one] - logits[self._other]


def _with_row(dense: Tensor, node: int, row: Tensor) -> Tensor:
    return dense.index_copy(0, torch.tensor([node], device=dense.device), row[None])


@dataclass(frozen=True)
class Reason:
    """A learned graph that joins two nodes, their similarity in it, and what this consists of.

    Attributes:
        graph: Name of the learned graph.
        similarity: Cosine of the two nodes.
        measure: ``"links"`` or ``"features"``: what is compared.
        parts: The parts of the similarity that are largest, by the id of a shared neighbour or the name of a feature.
        others: Number of further shared neighbours or features that have a part.
    """

    graph: str
    similarity: float
    measure: str
    parts: dict[Any, float]
    others: int

    def __str__(self) -> str:
        if not self.parts:  # Q can make different neighbours count alike
            return "no shared neighbours, but neighbours that count alike in the model"
        named = ", ".join(str(name) for name in self.parts)
        more = f" and {self.others:,} more" if self.others else ""
        what = "shared neighbours" if self.measure == "links" else "features"
        return f"{what} {named}{more}"


def feature_names(classifier: NodeClassifier, columns: int) -> list[str]:
    """The names of the features that the model reads."""
    if classifier.fitted_.prepared.features.structure is not None:
        return list(FEATURE_NAMES)
    return classifier.graph_.get("feature_names") or [f"feature {column}" for column in range(columns)]


def node_name(classifier: NodeClassifier, node: int) -> Any:
    """The id of a node, or its number if nodes have no ids."""
    return node if classifier.node_ids_ is None else classifier.node_ids_[node : node + 1].tolist()[0]


def reason(classifier: NodeClassifier, compared: ComparedRows, node: int, other: int, similarity: float) -> Reason:
    """Say what the similarity of two nodes consists of."""
    parts = compared.parts(node, other).cpu()
    if compared.measure == "links":
        shared = (compared.row(node) != 0) & (compared.row(other) != 0)
        # with both directions, A has two columns for each node
        parts = torch.where(shared.cpu(), parts, 0.0).view(-1, len(classifier.y_)).sum(dim=0)
    order = parts.argsort(descending=True, stable=True)[: int((parts > 0).sum())].tolist()

    def name(column: int) -> Any:
        if compared.measure == "links":
            return node_name(classifier, column)
        return feature_names(classifier, len(parts))[column]

    named = {name(column): float(parts[column]) for column in order[:SHOWN]}
    return Reason(compared.name, similarity, compared.measure, named, len(order) - len(order[:SHOWN]))
