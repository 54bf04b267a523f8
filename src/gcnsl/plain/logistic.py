"""Logistic regression on a node's features, the means over its neighbours, and its place in the graph."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from torch import Tensor
from torch_geometric.data import Data

from gcnsl.checks import UNLABELLED
from gcnsl.errors import InputError
from gcnsl.nn.graph_model import declared_by
from gcnsl.plain.neighbour_columns import (
    ABSENT,
    PLACE_COLUMNS,
    PLACE_SOURCES,
    VIEWS,
    Contributions,
    NeighbourColumns,
    neighbour_sources,
    summed,
)
from gcnsl.plain.plain_config import LogisticConfig
from gcnsl.sparse import SPARSE_SHARE, Matrix, SparseMatrix, to_scipy

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
FIRST, FACTOR = 0.1, 10**0.5
"""The inverse penalty C of the first stage, and by how much it grows from stage to stage."""
PLACE_LENGTH = 0.1
"""Root mean square of the lengths of P's rows, in units of that of X, so that features count for more than the place.
On validation nodes of six graphs, .03 to .3 did about as well, and 1 cost up to 7 points."""
MOST_BYTES = 2 << 30
"""The largest table of means of sparse features."""
LARGEST_GRAM = 4096
"""Up to so many training nodes, the matrix of the products between their rows is used."""


@declared_by(LogisticConfig)
class Logistic(NeighbourColumns):
    r"""A linear model of all columns, fitted by scikit-learn.

    .. math::
        Z = \operatorname{softmax}\Bigl(X W_0 + \sum_v \sum_{k=1}^{K} \hat A_v^k X W_{vk} + P W_P + b\Bigr)

    with the views v and the columns of :class:`NeighbourColumnsConfig`, P being the places of the nodes. For the L2
    penalty, X and all :math:`\hat A_v^k X` are divided by the root mean square of the lengths of X's rows, so that
    their unit does not matter, and the columns of P are standardised over the training nodes and made small
    (:data:`PLACE_LENGTH`); W takes this up afterwards. From stage to stage the inverse penalty C grows by √10; the
    first is 0.1. The forward pass returns the logits.

    Shapes:
        x (n × d), dense or sparse; place (n × 36); views, one or three Â (n × n) → n × C.
    """

    weight: Tensor
    bias: Tensor

    def __init__(self, in_channels: int, out_channels: int, *, hops: int = LogisticConfig.hops) -> None:
        super().__init__()
        self.hops, self.in_channels = hops, in_channels
        columns = (1 + len(VIEWS) * hops) * in_channels + PLACE_COLUMNS
        self.register_buffer("weight", torch.zeros(out_channels, columns))
        self.register_buffer("bias", torch.zeros(out_channels))

    def stages(self, inputs: Sequence[Matrix], y: Tensor, weight: Tensor) -> Iterator[None]:
        """Fit with ever smaller penalties, each time from the solution before."""
        rows = (y != UNLABELLED).nonzero().flatten()
        target, sample_weight = y[rows].cpu().numpy(), weight[rows].cpu().numpy()
        self.bias.fill_(ABSENT)
        if len(np.unique(target)) == 1:
            self.bias[target[0]] = 0
            yield
            return
        columns, scale, mean = _scaled_columns(inputs, rows.cpu().numpy(), self.hops)
        columns, back = _row_space(columns)
        solver = LogisticRegression(C=FIRST, tol=1e-3, max_iter=200, warm_start=True)
        while True:
            with warnings.catch_warnings():  # an approximate solution is as good as the exact one
                warnings.simplefilter("ignore", ConvergenceWarning)
                solver.fit(columns, target, sample_weight)
            self._keep(solver.classes_, back(solver.coef_), solver.intercept_, scale, mean)
            yield
            solver.C *= FACTOR

    def _keep(self, classes: Ints, coefficients: Floats, intercept: Floats, scale: Floats, mean: Floats) -> None:
        """Store a solution as it applies to the columns before scaling."""
        if len(classes) == 2:  # scikit-learn has one row then, the log-odds of the second class
            coefficients, intercept = (np.stack([-part[0], part[0]]) / 2 for part in (coefficients, intercept))
        coefficients, intercept = (part - part.mean(axis=0) for part in (coefficients, intercept))
        coefficients = coefficients / scale
        found, place = torch.from_numpy(coefficients).to(self.weight), self.weight.shape[1] - PLACE_COLUMNS
        self.weight.zero_()[classes, place:] = found[:, -PLACE_COLUMNS:]
        self.weight[classes, : found.shape[1] - PLACE_COLUMNS] = found[:, :-PLACE_COLUMNS]
        self.bias[classes] = torch.from_numpy(intercept - coefficients @ mean).to(self.bias)

    def logits(self, x: Matrix, place: Tensor, *views: SparseMatrix) -> Tensor:
        """Logits of every node (n × C)."""
        blocks, classes = 1 + len(views) * self.hops, len(self.bias)
        weight = self.weight[:, : blocks * self.in_channels].view(classes, blocks, self.in_channels)
        first, *mapped = (x @ weight.permute(2, 1, 0).flatten(1)).view(len(place), blocks, classes).unbind(dim=1)
        logits: Tensor = first + place @ self.weight[:, -PLACE_COLUMNS:].T + self.bias
        for number, adjacency in enumerate(views):
            seen = torch.zeros_like(logits)
            for power in reversed(mapped[number * self.hops : (number + 1) * self.hops]):
                seen = adjacency @ (seen + power)
            logits = logits + seen
        return logits

    def contributions(
        self, inputs: Sequence[Matrix], graph: Data, config: LogisticConfig, *, node: int, one: int, other: int
    ) -> Contributions:
        """What each column adds to the log-odds of class ``one`` against class ``other`` at a node.

        It is the column's weight times how far it is from the mean over the labelled nodes.
        """
        features, place, *views = map(_as_numpy, inputs)
        known = (graph.y != UNLABELLED).numpy()
        rows = np.stack([np.arange(len(known)) == node, known / known.sum()])
        blocks = [rows @ features]
        for view in views:
            seen = rows
            for _ in range(self.hops):
                seen = seen @ view
                blocks.append(seen @ features)
        columns = np.hstack([*blocks, rows @ place])
        weight = (self.weight[one] - self.weight[other]).cpu().double().numpy()
        weight = np.concatenate([weight[: columns.shape[1] - PLACE_COLUMNS], weight[-PLACE_COLUMNS:]])
        sources = neighbour_sources(self.in_channels, len(views), self.hops)
        return summed([*sources, *PLACE_SOURCES], weight * (columns[0] - columns[1]))


def _scaled_columns(inputs: Sequence[Matrix], rows: Ints, hops: int) -> tuple[Any, Floats, Floats]:
    """Scaled columns of the training nodes (t × m), and the scale (m) and mean (m) that were taken off them.

    Those of features may be sparse, so nothing is subtracted from them.
    """
    x, views = _as_numpy(inputs[0]), [_as_numpy(view) for view in inputs[2:]]
    if sp.issparse(x):
        _check_size(x, views, hops, rows)
    blocks = [x[rows]]
    for adjacency in views:
        block = x
        for hop in range(hops):
            last = hop == hops - 1
            block = (adjacency[rows] if last else adjacency) @ block
            blocks.append(block if last else block[rows])
    length = np.sqrt((blocks[0] ** 2).sum() / len(rows)) or 1.0
    place = _as_numpy(inputs[1])[rows]
    mean, std = place.mean(axis=0), place.std(axis=0)
    std = np.where(std > 1e-6, std, 1.0) * np.sqrt(PLACE_COLUMNS) / PLACE_LENGTH
    parts = [*(block / length for block in blocks), (place - mean) / std]
    columns: Any = sp.hstack(parts, format="csr") if sp.issparse(x) else np.hstack(parts)
    if sp.issparse(columns) and columns.nnz > SPARSE_SHARE * columns.shape[0] * columns.shape[1]:
        columns = columns.toarray()
    scale = np.concatenate([np.full(len(blocks) * x.shape[1], length), std])
    return columns, scale, np.concatenate([np.zeros(len(scale) - PLACE_COLUMNS), mean])


def _check_size(x: sp.csr_array, views: Sequence[Any], hops: int, rows: Ints) -> None:
    """Refuse means over neighbours that would fill a sparse X, before they are computed."""
    most, d = np.diff(x.indptr).astype(np.float64), x.shape[1]
    entries, blocks = most[rows].sum(), 1 + len(views) * hops
    for adjacency in views:
        pattern, filled = adjacency.astype(bool).astype(np.float64), most
        for hop in range(hops):
            filled = np.minimum(pattern @ filled, d)
            entries += filled[rows].sum() if hop == hops - 1 else filled.sum()
    is_full = entries > SPARSE_SHARE * len(rows) * blocks * d
    needed = 8 * len(rows) * blocks * d if is_full else 12 * entries
    if needed > MOST_BYTES:
        raise InputError(
            f"logistic regression takes the means of {d:,} sparse features over neighbours, which here are hardly "
            f"sparse: they take {needed / 2**30:,.0f} GiB, and at most {MOST_BYTES / 2**30:.0f} are allowed; "
            f"set hops below {hops}, or use another method"
        )


def _as_numpy(matrix: Matrix) -> Any:
    """A matrix in float64: a dense one as an array, a sparse one in SciPy's form."""
    if isinstance(matrix, Tensor) and matrix.layout == torch.strided:
        return matrix.cpu().double().numpy()
    return to_scipy(matrix).astype(np.float64)


def _row_space(columns: Any) -> tuple[Any, Callable[[Floats], Floats]]:
    """Fewer columns with the same products between rows (t × r), and what takes their coefficients back (C × m).

    With an L2 penalty, the best coefficients are combinations of the rows, so nothing is lost. If there are more rows
    than columns, or too many rows for a matrix of their products, the columns stay as they are.
    """
    t, m = columns.shape
    if t >= m or t > LARGEST_GRAM:
        return columns, lambda coefficients: coefficients
    gram = columns @ columns.T
    values, vectors = np.linalg.eigh(gram.toarray() if sp.issparse(gram) else gram)
    kept = (values > 1e-10 * values[-1]) | (np.arange(t) == t - 1)  # at least one, even if all rows are zero
    vectors, root = vectors[:, kept], np.sqrt(values[kept].clip(min=np.finfo(values.dtype).tiny))
    return vectors * root, lambda coefficients: (columns.T @ (vectors / root @ coefficients.T)).T
