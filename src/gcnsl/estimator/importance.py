"""What matters over all: how much worse a model is on held-out nodes if a column is shuffled, or the edges.

Permutation importance (Breiman, 2001). A column is shuffled among all nodes, so that neighbours have other values, too.
The edges are shuffled by giving every node the place of another one in the graph, with its neighbours and whatever
methods have computed of the place. Nothing is trained again, so two columns that say the same both look unimportant.
GCN-SL's spectral features are shuffled with all columns together, but not with one.
"""

from __future__ import annotations

import copy
import math
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from sklearn.feature_selection import f_classif
from sklearn.preprocessing import normalize
from torch import Tensor

from gcnsl.auto import Blend
from gcnsl.auto.ensemble import Member, tempered
from gcnsl.datasets.neighbourhoods import StructuralNeighbourhood
from gcnsl.errors import InputError
from gcnsl.estimator.contributions import columns_of
from gcnsl.estimator.deciding import nodes_in_words
from gcnsl.methods import Fitted, Prepared
from gcnsl.nn.gcn_sl import SpectralColumns
from gcnsl.plain.neighbour_columns import Place
from gcnsl.sparse import adjacency_matrix, from_scipy, to_scipy
from gcnsl.training.metrics import METRICS, Floats, Ints, choose_metric
from gcnsl.training.objective import predict_logits

if TYPE_CHECKING:
    from gcnsl.estimator.node_classifier import NodeClassifier

MOST_COLUMNS = 30
"""Of more columns, those are shuffled that tell most about the class by themselves."""
REPEATS, SECONDS = 3, 20.0
ALONE = 0.05
"""A column does it alone if, with all else shuffled, it loses at most this share of what the model is better by."""
LEAST_GAIN = 0.1
"""With a smaller difference between a model and one without columns and edges, no column is said to do it alone."""


@dataclass(frozen=True)
class ColumnImportance:
    """A column: the metric when it is shuffled, by how much that is worse, and the standard deviation of repeats.

    That is NaN if there was time for one only.
    """

    column: str
    shuffled: float
    importance: float
    std: float


@dataclass(frozen=True)
class Importance:
    """How good a model is on held-out nodes by a metric, and how good with something shuffled.

    ``kind`` is that of the nodes: ``"test"``, ``"validation"``, or ``"out-of-fold"``, each predicted by models that had
    not learned from it. ``both`` is of the model as it is. ``columns`` are those that were tried of ``of_columns``, the
    most important first; ``alone`` is the first of them, and the metric with all else shuffled, if it does it alone.
    """

    metric: str
    nodes: int
    kind: str
    both: float
    without_edges: float
    without_columns: float | None
    without_both: float
    columns: list[ColumnImportance]
    of_columns: int
    alone: tuple[str, float] | None

    def text(self, value: float | None) -> str:
        """A value of the metric."""
        return METRICS[self.metric].text(value)

    def worse(self, column: ColumnImportance) -> str:
        """By how much the metric is worse without a column: in points if it is a share."""
        unit, digits, words = (100, 1, " points") if METRICS[self.metric].is_share else (1, 3, "")
        spread = "" if math.isnan(column.std) else f" ± {unit * column.std:.{digits}f}"
        return f"{unit * column.importance:+.{digits}f}{spread}{words}"

    @property
    def on_nodes(self) -> str:
        """The nodes in words."""
        return nodes_in_words(self.nodes, self.kind)

    @property
    def leak(self) -> str:
        """What to ask about a column that does it alone; empty if there is none."""
        if self.alone is None:
            return ""
        told = f"Column {self.alone[0]!r} does it alone: {self.text(self.alone[1])} with all else shuffled."
        return f"{told} Is its value known before the class is? If not, leave it out (--drop)."

    def sentences(self) -> list[str]:
        """What people should know, in a few sentences."""
        parts = [f"without edges {self.text(self.without_edges)}", f"without columns {self.text(self.without_columns)}"]
        parts = parts if self.without_columns is not None else parts[:1]
        parts += [f"without both {self.text(self.without_both)}"] if len(parts) > 1 else []
        told = [f"{self.metric.capitalize()} {self.text(self.both)} on {self.on_nodes}; {', '.join(parts)}."]
        told += [self.leak] if self.leak else []
        if self.of_columns > len(self.columns) > 0:
            told.append(f"{len(self.columns)} of {self.of_columns:,} columns were shuffled, one at a time.")
        return told

    def to_frame(self) -> pd.DataFrame:
        """The columns as a table; ``attrs`` has all else."""
        table = pd.DataFrame([asdict(each) for each in self.columns], columns=list(ColumnImportance.__annotations__))
        table.attrs = {name: value for name, value in self.to_dict().items() if name != "columns"}
        return table

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)


def measure_importance(
    classifier: NodeClassifier,
    nodes: Ints | None = None,
    truth: Ints | None = None,
    *,
    kind: str = "test",
    metric: str | None = None,
    seconds: float = SECONDS,
    seed: int = 0,
) -> Importance:
    """Measure the importance of columns and edges.

    Args:
        classifier: A fitted one.
        nodes: Numbers of nodes of the training graph to measure on (m), and ``truth``, their classes' numbers (m); by
            default those that ``fit_graph`` was given to hold back, or else those that training held back.
        kind: What these nodes are.
        metric: A name of :data:`gcnsl.training.METRICS`; by default that which chose the model of
            ``"auto"``, or the one that suits the classes (:func:`gcnsl.training.metrics.choose_metric`).
        seconds: Time after which no further column is shuffled. Each is shuffled up to three times.
        seed: Seed of the shuffling.
    """
    if nodes is None or truth is None:
        kind, nodes, truth = _nodes_to_measure(classifier)
    table = getattr(classifier, "leaderboard_", None)
    if table is not None:
        metric = metric or str(table["metric"].iloc[0])
    metric = metric or choose_metric(classifier.y_, classifier.classes_).metric
    predict = _predictor(classifier.fitted_, nodes, out_of_fold=kind == "out-of-fold")
    generator = np.random.default_rng(seed)
    began, n, owners = time.monotonic(), len(classifier.y_), np.array(columns_of(classifier.graph_), dtype=object)
    measure, everything = METRICS[metric], np.ones(len(owners), dtype=bool)

    def score(columns: NDArray[np.bool_] | None, *, edges: bool = False) -> float:
        order = None if columns is None else generator.permutation(n)
        return measure(predict(order, columns, generator.permutation(n) if edges else None), truth)

    def mean_score(columns: NDArray[np.bool_] | None, *, edges: bool) -> float:
        return float(np.mean([score(columns, edges=edges) for _ in range(REPEATS)]))

    both, without_edges, without_both = score(None), mean_score(None, edges=True), mean_score(everything, edges=True)
    tried, found = _most_telling(classifier, owners), defaultdict[str, list[float]](list)
    for _ in range(REPEATS):
        for name in tried:
            if time.monotonic() - began < seconds or not found:
                found[name].append(score(owners == name))
    drops = {name: measure.gain(both) - np.array([measure.gain(v) for v in values]) for name, values in found.items()}
    columns = [
        ColumnImportance(k, float(np.mean(found[k])), float(d.mean()), float(d.std()) if len(d) > 1 else math.nan)
        for k, d in drops.items()
    ]
    columns.sort(key=lambda each: -each.importance)
    alone, gained = None, measure.gain(both) - measure.gain(without_both)
    if columns and gained >= LEAST_GAIN and columns[0].importance > 0:
        value = mean_score(owners != columns[0].column, edges=True)
        if measure.gain(value) >= measure.gain(both) - ALONE * gained:
            alone = columns[0].column, value
    return Importance(
        metric=metric,
        nodes=len(nodes),
        kind=kind,
        both=both,
        without_edges=without_edges,
        without_columns=mean_score(everything, edges=False) if len(owners) else None,
        without_both=without_both,
        columns=columns,
        of_columns=len(set(owners)),
        alone=alone,
    )


def _nodes_to_measure(classifier: NodeClassifier) -> tuple[str, Ints, Ints]:
    """The kind, numbers and classes of the test nodes or, if there are none, of those that training held back."""
    if classifier._held_out is not None:
        return "test", *classifier._held_out
    judged = classifier.held_out()
    if judged.kind == "out-of-fold":
        blend = classifier.fitted_
        assert isinstance(blend, Blend)
        assert blend.out_of_fold is not None
        fold = blend.out_of_fold.fold
        if not len(fold) or any(len(member.fits) <= int(fold.max()) for member in blend.members):
            raise InputError("the ensemble has no models that have not learned from a node: name a graph with others")
    return judged.kind, judged.nodes, classifier.y_[judged.nodes]


def _predictor(fitted: Fitted | Blend, nodes: Ints, *, out_of_fold: bool) -> Callable[..., Floats]:
    """What is predicted for some nodes (m × C) with features and edges shuffled as :func:`_shuffled_inputs` says."""
    judged = fitted.out_of_fold if out_of_fold and isinstance(fitted, Blend) else None

    def of_fits(fits: Sequence[Fitted], *how: Any) -> Tensor:
        prepared = fits[0].prepared
        with prepared.threads():
            inputs = _shuffled_inputs(prepared, *how)
            return torch.stack([predict_logits(fit.model, inputs).cpu()[nodes].softmax(dim=1) for fit in fits])

    def of_member(member: Member, *how: Any) -> Floats:
        each = of_fits(member.fits, *how)
        mean = each.mean(dim=0) if judged is None else each[judged.fold, torch.arange(len(nodes))]
        return tempered(mean.numpy(), member.temperature)

    def probabilities(*how: Any) -> Floats:
        if isinstance(fitted, Fitted):
            return of_fits([fitted], *how)[0].numpy()
        parts = [of_member(member, *how) for member in fitted.members]
        weights = [member.weight for member in fitted.members]
        return tempered(np.average(parts, axis=0, weights=weights), fitted.temperature)

    return probabilities


def _shuffled_inputs(
    prepared: Prepared, order: Ints | None, columns: NDArray[np.bool_] | None, places: Ints | None
) -> Any:
    """A model's inputs with the values of some columns (d), and the places in the graph, in another order (n)."""
    graph, features, precomputed = copy.copy(prepared.graph), prepared.features, prepared.precomputed
    if order is not None and columns is not None and columns.any():
        graph.x = _with_shuffled(graph.x, order, columns)
        if columns.all() and isinstance(precomputed, SpectralColumns):
            precomputed = replace(precomputed, values=precomputed.values[order])
    if places is not None:
        x, y = graph.x, graph.y
        graph = graph.subgraph(torch.from_numpy(places))
        graph.x, graph.y = x, y
        if isinstance(precomputed, Place):
            precomputed = replace(precomputed, values=precomputed.values[places])
        elif isinstance(precomputed, StructuralNeighbourhood):
            moved_to = torch.from_numpy(np.argsort(places))
            precomputed = replace(precomputed, edge_index=moved_to[precomputed.edge_index])
        if features.structure is not None:
            structure = replace(features.structure, features=features.structure.features[places])
            features = replace(features, structure=structure)
    return prepared.changed_inputs(graph, features, precomputed)


def _with_shuffled(x: Tensor, order: Ints, columns: NDArray[np.bool_]) -> Tensor:
    """X with the rows of some columns in another order."""
    chosen = torch.from_numpy(columns)
    if x.layout == torch.strided:
        return torch.where(chosen, x[order], x)
    kept, moved = (to_scipy(x).multiply(mask.astype(np.float32)) for mask in (~columns, columns))
    return from_scipy((kept.tocsr() + moved.tocsr()[order]).tocsr())


def _most_telling(classifier: NodeClassifier, owners: NDArray[Any]) -> list[str]:
    """The columns that tell most about the class by themselves or by their mean over neighbours: by ANOVA's F."""
    names = list(dict.fromkeys(owners.tolist()))
    if len(names) <= MOST_COLUMNS:
        return names
    graph, known = classifier.graph_, np.flatnonzero(classifier.train_mask_)
    x, y = to_scipy(graph.x), classifier.y_
    means = normalize(adjacency_matrix(graph.edge_index, len(y), self_loops=False)[known], norm="l1") @ x
    with np.errstate(divide="ignore", invalid="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of constant features
        telling = np.nan_to_num(np.maximum(f_classif(x[known], y[known])[0], f_classif(means, y[known])[0]))
    best = pd.Series(telling).groupby(owners).max().sort_values(ascending=False, kind="stable")
    return [str(name) for name in best.index[:MOST_COLUMNS]]
