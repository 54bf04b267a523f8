r"""What adds to a prediction, in log-odds of one class against another: columns, known labels and links.

Trees have TreeSHAP, as LightGBM computes it; a linear model and the votes of labels are split exactly; an ensemble's
contributions are the weighted sum of its members'. For networks they are integrated gradients of f, the log-odds of the
node. With the features X as the model reads them and those of typical nodes, B (:func:`_typical`), the feature j of
node k is given

.. math::
    a_{kj} = (X_{kj} - B_{kj}) \int_0^1 \frac{\partial f}{\partial X_{kj}}(B + \alpha (X - B)) \, d\alpha, \qquad
    \sum_{k, j} a_{kj} = f(X) - f(B),

and what remains, f(B) minus its mean over the training nodes, comes from whom the node links to. A* is held fixed
(but not the order in which NLGNN lines up the nodes, whose jumps are given to nothing). What GCN-SL's spectral features
add is given to the columns that they are made of (:func:`_by_column`). In a graph of more than :data:`LARGEST` values,
the features of the nearest nodes change, and all else is held fixed.

Derived columns are named for people, by the columns of the user's table.

Lundberg et al.: From local explanations to global understanding with explainable AI for trees. Nat. Mach. Intell. 2020.
Sundararajan, Taly, Yan: Axiomatic attribution for deep networks. ICML 2017.
"""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from scipy.sparse.csgraph import dijkstra
from torch import Tensor
from torch_geometric.data import Data

from gcnsl.auto import Blend
from gcnsl.checks import UNLABELLED
from gcnsl.graph.checked_graph import node_titles
from gcnsl.graph.columns import is_number, sort_of
from gcnsl.methods import Fitted
from gcnsl.nn.gcn_sl import SpectralColumns
from gcnsl.nn.preprocessing import by_relation, relation_count
from gcnsl.plain.neighbour_columns import (
    DEGREE,
    FAR,
    KIND_KNOWN,
    NEAR,
    NEAR_KNOWN,
    OWN,
    POSITION,
    SELF_KNOWN,
    STRUCTURE_SOURCES,
    TWIN,
    Contributions,
    Source,
    sources_of,
    summed,
)
from gcnsl.sparse import Matrix, SparseMatrix, adjacency_matrix, to_scipy
from gcnsl.spectral import SpectralFeatures
from gcnsl.spectral.maps import LinearMap
from gcnsl.spectral.structural_features import FEATURE_NAMES

if TYPE_CHECKING:
    from gcnsl.estimator.node_classifier import NodeClassifier

STEPS = 32
"""Midpoints of the integral, for all models of a member together; each is a forward and a backward pass."""
LARGEST = 1 << 22
"""At most so many values of features have a share of their own."""
LINKS = "whom it links to"
TINY = 1e-6
"""Smaller contributions are rounding."""


def contributions(fitted: Fitted | Blend, node: int, *, one: int, other: int, steps: int = STEPS) -> Contributions:
    """What adds to the log-odds of class ``one`` against class ``other`` at a node of the training graph.

    The numbers in its sources are those of the graph's features, classes and nodes.
    """
    if isinstance(fitted, Fitted):
        return _without_tiny(_of_model(fitted, node, one, other, steps))
    total = Counter[Source]()
    for member in fitted.members:
        share = member.weight / (len(member.fits) * member.temperature * fitted.temperature)
        each = max(1, steps // len(member.fits))
        for fit in member.fits:
            for source, value in _of_model(fit, node, one, other, each).items():
                total[source] += share * value  # type: ignore[assignment]  # it counts with fractions
    return _without_tiny(total)


def _without_tiny(found: Any) -> Contributions:
    return {source: value for source, value in found.items() if abs(value) > TINY}


def _of_model(fitted: Fitted, node: int, one: int, other: int, steps: int) -> Contributions:
    prepared, model = fitted.prepared, cast("Any", fitted.model)
    graph, config = prepared.graph, prepared.method.config
    if hasattr(model, "contributions"):
        found: Contributions = model.contributions(prepared.inputs, graph, config, node=node, one=one, other=other)
        basis = getattr(prepared.precomputed, "basis", None)
        if basis is not None:
            found = _of_features(found, prepared.features.of(graph), graph, basis.numpy(), node)
    else:
        found = _integrated_gradients(fitted, node, one, other, steps)
    if prepared.features.structure is None:
        return found
    own = prepared.inputs[0].shape[1] - len(STRUCTURE_SOURCES) if graph.num_features else 0
    return summed((_about_structure(source, own) for source in found), found.values())


def _about_structure(source: Source, own: int) -> Source:
    """What a feature is about, if it is a structural one, which follow the node's own features."""
    if source.text not in (OWN, NEAR, FAR) or source.number is None or source.number < own:
        return source
    return STRUCTURE_SOURCES[source.number - own] if source.text == OWN else Source(POSITION)


def _of_features(found: Contributions, x: Matrix, graph: Data, basis: NDArray[Any], node: int) -> Contributions:
    r"""Contributions of components :math:`x V` given to the features, by the squares of what these add to them.

    A component z_k of a node differs from its mean by :math:`\sum_j (x_j - \bar x_j) V_{jk}`.
    """
    rows = _known(graph).numpy()
    features, around = to_scipy(x), adjacency_matrix(graph.edge_index, graph.num_nodes, self_loops=False)
    seen, total = (np.arange(len(rows)) == node).astype(np.float64), Counter[Source]()
    for text in (OWN, NEAR, FAR):
        change = (seen / max(seen.sum(), 1) - rows / rows.sum()) @ features
        parts = (change[:, None] * basis) ** 2
        parts /= np.maximum(parts.sum(axis=0), np.finfo(np.float64).tiny)
        shares = np.array([found.get(Source(text, k), 0.0) for k in range(basis.shape[1])])
        for number, value in enumerate(parts @ shares):
            total[Source(text, number)] += value
        seen = seen @ around
    return {s: v for s, v in found.items() if s.text not in (OWN, NEAR, FAR)} | dict(total)


def _integrated_gradients(fitted: Fitted, node: int, one: int, other: int, steps: int) -> Contributions:
    prepared, model = fitted.prepared, fitted.model
    x, *rest = prepared.inputs
    (n, d), known = x.shape, _known(prepared.graph)
    learns = getattr(model, "learns_graph", False) and hasattr(model, "comparisons")
    fixed: dict[str, Any] = {"compared": x} if learns else {}
    spectral = prepared.precomputed if n * d <= LARGEST else None
    if isinstance(spectral, SpectralColumns):  # beside X
        x = torch.cat([x if isinstance(x, Tensor) else x.to_dense(), cast("Tensor", rest.pop())], dim=1)
    links = adjacency_matrix(prepared.graph.edge_index, n, self_loops=False)
    means, kinds = _typical(to_scipy(x), links, known.numpy())
    kinds[node] = 0
    typical, kind = torch.from_numpy(means).to(x.device, x.dtype), torch.from_numpy(kinds)

    def log_odds(features: Any, *others: Matrix) -> Tensor:
        if isinstance(spectral, SpectralColumns):
            features, others = features[:, :d], (*others, features[:, d:])
        logits: Tensor = model(features, *others, **fixed)
        return logits[:, one] - logits[:, other]

    rows, near = _nearest(links, node, max(1, LARGEST // max(1, d)))
    own = x[rows] if isinstance(x, Tensor) else torch.from_numpy(to_scipy(x)[rows.numpy()].toarray()).to(typical)
    base = typical[kind[rows]]
    change, total = own - base, torch.zeros_like(own)
    for alpha in (torch.arange(steps, dtype=torch.float64) + 0.5) / steps:
        leaf = (base + float(alpha) * change).requires_grad_()
        with torch.enable_grad():
            value = log_odds(with_rows(x, rows, leaf), *rest)[node]
            if value.requires_grad:  # the model reads the features
                total += torch.autograd.grad(value, leaf)[0]
    shares = (total * change).double().cpu().numpy() / steps
    if isinstance(spectral, SpectralColumns):
        read = to_scipy(prepared.features.of(prepared.graph)).astype(np.float64)
        scaled, weights = _parts_of(spectral.transformer, read)
        away = scaled[rows.numpy()].toarray() - _typical(scaled, links, known.numpy())[0][kinds[rows]]
        shares[:, :d] += _by_column(shares[:, d:], away, weights)
    by_distance = shares[0, :d], shares[1 : 1 + near, :d].sum(axis=0), shares[1 + near :, :d].sum(axis=0)
    found = summed([source for text in (OWN, NEAR, FAR) for source in sources_of(text, d)], np.concatenate(by_distance))
    if n * d <= LARGEST:
        flat = log_odds(typical[kind], *rest).detach().cpu().double()
        found[Source(LINKS)] = float(flat[node] - flat[known].mean())
    return found


def _parts_of(transformer: SpectralFeatures, x: sp.csr_array) -> tuple[sp.csr_array, NDArray[Any]]:
    """X (n × d), its rows scaled, and weights (d × c): their product are the spectral features, but for SC.

    That compares distances, of which all columns are a part.
    """
    extension = transformer.extension_
    if isinstance(extension, LinearMap):
        return sp.csr_array(sp.diags_array(extension.row_scale(x)) @ x), extension.weight
    return x, np.ones((x.shape[1], extension.weight.shape[1]))


def _by_column(shares: NDArray[Any], away: NDArray[Any], weights: NDArray[Any]) -> NDArray[Any]:
    """What spectral features of some nodes add (r × c), given to columns (r × d) by the squares of what these change.

    Args:
        shares: What each feature adds.
        away: How far the scaled columns are from those of typical nodes (r × d).
        weights: Of the columns in each feature (d × c).
    """
    found = np.zeros(away.shape)
    for share, weight in zip(shares.T, weights.T, strict=True):
        squares = (away * weight) ** 2
        found += squares * (share / np.maximum(squares.sum(axis=1), np.finfo(np.float64).tiny))[:, None]
    return found


def _known(graph: Data) -> Tensor:
    """The nodes that contributions are compared with: those of known class (n, boolean)."""
    known: Tensor = graph.y != UNLABELLED
    return known


def _typical(x: Any, links: sp.csr_array, known: NDArray[np.bool_]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Mean features of three kinds of nodes (3 × d), and the kind of each node (n).

    Training nodes are of kind 0. Others may be quite different, shops among customers; those that it takes an odd
    number of steps to reach from training nodes are of kind 1, the other ones of kind 2. Their means are weighted by
    how often one step, or two, from a training node lead to them, so that neighbours that all nodes have say nothing.
    """
    distance = dijkstra(links, indices=known.nonzero()[0], unweighted=True, min_only=True)
    steps = np.where(np.isinf(distance), 0, distance).astype(np.int64)
    kinds = np.where(steps % 2, 1, np.minimum(steps, 2))
    weight, means = known / known.sum(), list[NDArray[Any]]()
    for kind in range(3):
        own = weight * (kinds == kind)
        means.append(own / own.sum() @ x if own.any() else means[0])
        weight = weight / np.maximum(np.diff(links.indptr), 1) @ links
    return np.stack(means), kinds


def _nearest(links: sp.csr_array, node: int, most: int) -> tuple[Tensor, int]:
    """At most so many nodes, with the node first and then its neighbours; and how many of them are neighbours."""
    near, n = links[[node]].indices, links.shape[0]
    further = np.unique(links[near].indices) if n > most else np.arange(n)
    further = np.setdiff1d(further, [node, *near])
    rows = np.concatenate([[node], near, further]).astype(np.int64)[:most]
    return torch.from_numpy(rows), min(len(near), most - 1)


def with_rows(x: Matrix, rows: Tensor, values: Tensor) -> Matrix:
    """X (n × d), dense or sparse, with other rows (r × d) at the nodes with these numbers (r)."""
    rows = rows.to(values.device)
    if len(rows) == len(x):
        return torch.zeros_like(values).index_copy(0, rows, values)
    return x.index_copy(0, rows, values) if isinstance(x, Tensor) else _SparseWithRows(x, rows, values)


class _SparseWithRows(SparseMatrix):
    """A sparse X with dense rows at some nodes, as far as models use X: for products, its shape and its type."""

    def __init__(self, x: SparseMatrix, rows: Tensor, dense: Tensor) -> None:
        self.shape, self.values, self._x, self._rows, self._dense = x.shape, x.values, x, rows, dense

    def __matmul__(self, other: Tensor) -> Tensor:
        product: Tensor = (self._x @ other).index_copy(0, self._rows, self._dense @ other)
        return product


TWINS_KNOWN, NEAR_UNKNOWN = "{label}: the class of those linked most alike", "neighbours of unknown class"


def columns_of(graph: Data) -> list[str]:
    """The column of the table that each feature of a graph comes from (d); without a table, each is its own."""
    encoder, names = graph.get("encoder"), graph.get("feature_names")
    if encoder is not None:
        return list(encoder.feature_columns)
    return names or [f"feature {number}" for number in range(graph.num_features)]


class UserColumns:
    """How what a prediction rests on is called, and its value at a node.

    Args:
        classifier: A fitted one.
        node: The number of the node.
    """

    def __init__(self, classifier: NodeClassifier, node: int = 0) -> None:
        self._classifier, self._graph, self._node = classifier, classifier.graph_, node
        self._columns = columns_of(self._graph)
        self._places = {name: place for place, name in reversed(list(enumerate(self._columns)))}

    @cached_property
    def features(self) -> list[str]:
        """The names of the features that the models read: the graph's own, and structural ones behind them."""
        return [*(self._graph.get("feature_names") or self._columns), *FEATURE_NAMES]

    def summary_of(self, source: Source, *, is_crowd: bool) -> Source:
        """What a source is counted to: a feature to the first feature of its column, one of a crowd to its class."""
        text, number, _ = source
        if number is not None and "{feature}" in text:
            return Source(text, self._places[self._columns[number]])
        if number is None or "{node}" not in text or not is_crowd:
            return source
        known = int(self._classifier.y_[number])
        if text == TWIN:
            return Source(TWINS_KNOWN, known)
        return Source(NEAR_UNKNOWN) if known == UNLABELLED else Source(NEAR_KNOWN, known)

    def column(self, source: Source) -> str | None:
        """The column that a source is about, if it is about any."""
        return self._columns[source.number] if "{feature}" in source.text and source.number is not None else None

    def told(self, source: Source) -> tuple[str, float | str | None]:
        """The name of a source, and its value at the node."""
        text, number, kind = source
        names: dict[str, Any] = {} if kind is None else {"kind": self._kinds[kind]}
        if number is None:
            return text.format(**names), self._of_node(text)
        if "{feature}" in text:
            names["feature"] = self._columns[number]
        elif "{label}" in text:
            names["label"] = self._classifier.classes_[number]
        else:
            names["node"] = node_titles(self._graph, np.array([number]))[0]
        value: float | str | None = None
        if text == OWN:
            value = self._value(self._columns[number])
        elif text == NEAR:
            value = self._around(self._columns[number])
        elif text in (NEAR_KNOWN, KIND_KNOWN):
            known = self._classifier.y_[self._neighbours if kind is None else self._neighbours_of(kind)]
            value = f"{int((known == number).sum())} of {int((known != UNLABELLED).sum())}"
        return text.format(**names), value

    def _of_node(self, text: str) -> float | str | None:
        if text == DEGREE:
            return float(len(self._neighbours))
        known = int(self._classifier.y_[self._node])
        return str(self._classifier.classes_[known]) if text == SELF_KNOWN and known != UNLABELLED else None

    @cached_property
    def _neighbours(self) -> Any:
        links = adjacency_matrix(self._graph.edge_index, self._graph.num_nodes, self_loops=False)
        return links[[self._node]].indices

    def _neighbours_of(self, kind: int) -> Any:
        """The neighbours along edges of a relation."""
        part = by_relation(self._graph)[kind]
        return adjacency_matrix(part.edge_index, part.num_nodes, self_loops=False)[[self._node]].indices

    @cached_property
    def _kinds(self) -> list[str]:
        """The names of the relations."""
        encoder = self._graph.get("encoder")
        found = encoder and encoder.relations
        return found.names if found else [str(kind + 1) for kind in range(relation_count(self._graph))]

    def _kind(self, column: str) -> str:
        encoder = self._graph.get("encoder")
        return "number" if encoder is None else str(encoder.kinds.get(column, "list"))  # as wide features are

    def _row(self, nodes: Any) -> dict[str, float]:
        """The mean of the features of some nodes by name, in the unit of the table."""
        values = to_scipy(self._graph.x)[nodes].mean(axis=0, dtype=np.float64)
        encoder = self._graph.get("encoder")
        return dict(
            zip(self.features, (values if encoder is None else encoder.own_units(values)).tolist(), strict=False)
        )

    def _value(self, column: str) -> float | str | None:
        """The value of the node in a column: a number, a date, or the level or tokens that it has."""
        row, kind = self._row([self._node]), self._kind(column)
        if is_number(kind):
            if row.get(f"{column} (missing)"):
                return "missing"
            return str(np.datetime64(round(row[column] * 86_400), "s"))[:10] if sort_of(kind) == "date" else row[column]
        return None if kind == "text" else ", ".join(self._parts(column, row)) or "other"

    def _around(self, column: str) -> str | None:
        """The mean over the node's neighbours of a column of numbers, or the most frequent level of a category."""
        kind = self._kind(column)
        if not len(self._neighbours) or kind == "text" or sort_of(kind) == "date":
            return None
        row = self._row(self._neighbours)
        if is_number(kind):
            return f"mean {row[column]:.4g}"
        parts = self._parts(column, row)
        return f"{(best := max(parts, key=parts.__getitem__))} {parts[best]:.0%}" if parts else None

    def _parts(self, column: str, row: dict[str, float]) -> dict[str, float]:
        """The levels or tokens of a column that a row has."""
        named = {name: row[name] for name, of in zip(self.features, self._columns, strict=False) if of == column}
        return {name[len(column) :].lstrip("=: ").strip("()"): value for name, value in named.items() if value}
