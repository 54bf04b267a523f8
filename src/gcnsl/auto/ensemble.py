"""How good models are on nodes that they did not learn from, and an ensemble that is weighted by that.

Caruana's selection (Caruana et al., 2004): beginning with the best model, the one that helps most is added again and
again, with replacement; a weight is how often a model was added. To guard against over-fitting few nodes, this is done
on ten halves of the nodes, with the same share of each class, and the weights are averaged. Each half's best model is
compared on the other half with the mean of the ensembles that were chosen without these nodes: if the ensembles are no
better, the best model stands alone.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from scipy.optimize import minimize_scalar
from torch import Tensor, nn
from torch_geometric.data import Data

from gcnsl.errors import InputError
from gcnsl.graph.edges import edge_parts
from gcnsl.methods import Fitted, Prepared
from gcnsl.methods.fitted import grown_logits
from gcnsl.training import History
from gcnsl.training.metrics import COUNTING, METRICS, Floats, Ints

FEW = 300
"""On fewer nodes, metrics that only count predictions are led by chance, and the log loss compares better."""
SMALLEST = 1e-4
"""A wrong prediction costs no more than one with this probability: a few should not decide by themselves."""
BAGS, ROUNDS, LARGEST_BAG = 10, 15, 1000
ENOUGH_FOR_TEMPERATURE = 10_000
LEAST_WEIGHT = 0.02
"""Models with less are left out: they cost time and change nothing."""
TINY = 1e-7


def leading(metric: str, nodes: int) -> str:
    """The metric that compares on so many nodes."""
    return "log-loss" if nodes < FEW and metric in COUNTING else metric


def merit(metric: str, probabilities: Floats, y: Ints) -> tuple[float, float]:
    """How good probabilities (v × C) are on nodes of these classes (v), more being better.

    It is the metric and then the log loss, which decides between equal ones, or the reverse where there are few nodes.
    """
    own = probabilities[np.arange(len(y)), y].astype(np.float64)
    sharpness = float(np.log(own.clip(min=SMALLEST)).mean()) if np.isfinite(own).all() else -math.inf
    if metric == "log-loss":
        return sharpness, 0.0
    gain = METRICS[metric].gain(METRICS[metric](probabilities, y))
    gain = -math.inf if math.isnan(gain) else gain
    return (gain, sharpness) if leading(metric, len(y)) == metric else (sharpness, gain)


class Weighted(NamedTuple):
    """An ensemble: the weights of the models, which sum to 1 (M), and what it predicts for the nodes (v × C).

    A node is predicted with the mean of those weights that were chosen on halves without it.
    """

    weights: Floats
    held_out: Floats


def weigh_models(probabilities: Floats, y: Ints, metric: str, *, seed: int) -> Weighted:
    """The ensemble of models with these probabilities (M × v × C) of nodes with these classes (v), the best first."""
    generator, models, nodes = np.random.default_rng(seed), len(probabilities), len(y)
    alone = Weighted(np.eye(models)[0], probabilities[0])
    if models == 1 or nodes < 4:
        return alone
    judged_by = leading(metric, nodes)
    # metrics that look at the probabilities take long to compute, and follow the log loss
    guide = judged_by if judged_by in COUNTING and nodes // 2 >= FEW else "log-loss"
    total, unseen, bags, singles = np.zeros(models), np.zeros((nodes, models)), np.zeros((nodes, 1)), []
    for bag, others in _halves(y, generator):
        some = np.ascontiguousarray(probabilities[:, bag].transpose(2, 0, 1))
        weights = _greedy(some, y[bag], guide)
        singles.append((_best(some, y[bag], guide), others))
        total += weights
        is_unseen = np.ones((nodes, 1), dtype=bool)
        is_unseen[bag] = False
        unseen += is_unseen * weights
        bags += is_unseen
    held_out: Floats = np.einsum("vm,mvc->vc", unseen / bags, probabilities)
    gains = [
        [_gain(each, held_out[others], probabilities[best, others], y[others]) for each in (judged_by, "log-loss")]
        for best, others in singles
    ]
    by_metric, by_log_loss = np.array(gains).T  # on nodes that are all of one class, some metrics are not defined
    if (float(np.nansum(by_metric)), by_log_loss.mean()) <= (0, 0):
        return alone
    kept: Floats = np.where(total < LEAST_WEIGHT * total.sum(), 0.0, total)
    if np.count_nonzero(kept) == 1:
        return Weighted(np.sign(kept), probabilities[kept.argmax()])
    return Weighted(kept / kept.sum(), held_out)


def _halves(y: Ints, generator: np.random.Generator) -> Iterator[tuple[Ints, Ints]]:
    """Nodes to choose by and others to compare on, of large halves a part; in both, the shares of the classes."""
    for _ in range(BAGS // 2):
        shuffled = generator.permutation(len(y))
        by_class = shuffled[np.argsort(y[shuffled], kind="stable")]
        one, other = (_spread(by_class[first::2], y)[:LARGEST_BAG] for first in (0, 1))
        yield one, other
        yield other, one


def _spread(nodes: Ints, y: Ints) -> Ints:
    """Nodes that are sorted by class in an order in which the first ones have the same shares, and all classes."""
    counts = np.bincount(y[nodes])
    rank = np.arange(len(nodes)) - (counts.cumsum() - counts)[y[nodes]]
    spread: Ints = nodes[np.argsort(rank / counts[y[nodes]], kind="stable")]
    return spread


def _gain(metric: str, together: Floats, single: Floats, y: Ints) -> float:
    """How much better the first probabilities (b × C) are than the second; NaN if that is not defined."""
    if metric in (*COUNTING, "log-loss"):
        found = gains_of(metric, np.stack([together.T, single.T], axis=1), y)
        return float(found[0] - found[1])
    return METRICS[metric].gain(METRICS[metric](together, y)) - METRICS[metric].gain(METRICS[metric](single, y))


def _greedy(probabilities: Floats, y: Ints, guide: str) -> Floats:
    """Weights by greedy selection with replacement: the best of all rounds, as the next one may be worse at first."""
    added, reached, total = list[int](), [], np.zeros_like(probabilities[:, 0])
    for size in range(1, ROUNDS + 1):
        together = total[:, None] + probabilities
        added.append(_best(together, y, guide, size))
        total = together[:, added[-1]]
        reached.append(total / size)
    best = _best(np.stack(reached, axis=1), y, guide) + 1
    found: Floats = np.bincount(added[:best], minlength=probabilities.shape[1]) / best
    return found


def _best(probabilities: Floats, y: Ints, guide: str, size: int = 1) -> int:
    """The number of the best of several models by a metric (M); of equal ones, the log loss decides.

    The probabilities (C × M × b) are sums over so many models (``size``), of nodes with these classes (b).
    """
    gains = gains_of(guide, probabilities, y, size), gains_of("log-loss", probabilities, y, size)
    return int(np.lexsort((-np.arange(probabilities.shape[1]), gains[1], gains[0]))[-1])


def gains_of(metric: str, probabilities: Floats, y: Ints, size: int = 1) -> Floats:
    """A metric that counts decisions, or the negative log loss of :func:`merit`, of several models (M).

    Arguments as in :func:`_best`. Models are the second axis, because many short rows take NumPy much longer than a few
    long ones.
    """
    classes, models, nodes = probabilities.shape
    gains: Floats
    if metric == "log-loss":
        own = probabilities[y, :, np.arange(nodes)] / size
        gains = np.log(own.clip(min=SMALLEST)).mean(axis=0)
        return gains
    predicted, sure = np.zeros((models, nodes), dtype=np.int64), probabilities[0].copy()
    for c in range(1, classes):
        np.copyto(predicted, c, where=probabilities[c] > sure)
        np.maximum(sure, probabilities[c], out=sure)
    right = predicted == y
    if metric == "accuracy":
        gains = right.mean(axis=1)
        return gains
    own, of_class = predicted + classes * np.arange(models)[:, None], np.bincount(y, minlength=classes)
    called = np.bincount(own.ravel(), minlength=models * classes).reshape(models, classes)
    found = np.bincount(own[right], minlength=models * classes).reshape(models, classes)
    if metric == "balanced-accuracy":
        gains = (found[:, of_class > 0] / of_class[of_class > 0]).mean(axis=1)
    else:
        assert metric == "macro-f1", metric
        gains = (2 * found / (called + of_class).clip(min=1)).sum(axis=1) / (called + of_class > 0).sum(axis=1)
    return gains


def best_temperature(probabilities: Floats, y: Ints) -> float:
    """The T for which :func:`tempered` probabilities (v × C) have the smallest log loss on nodes of these classes.

    If there are many nodes, some of them at equal distances tell it. Of few nodes all may be classified correctly,
    which is no certainty for others: as by Platt (1999), one in v + 2 counts as of any class.
    """
    step, doubt = max(1, len(y) // ENOUGH_FOR_TEMPERATURE), 1 / (len(y) + 2)
    probabilities, y = probabilities[::step], y[::step]

    def loss(log_temperature: float) -> float:
        logs = np.log(tempered(probabilities, float(np.exp(log_temperature))).clip(min=TINY))
        return float(-(1 - doubt) * logs[np.arange(len(y)), y].mean() - doubt * logs.mean())

    return float(np.exp(minimize_scalar(loss, bounds=(-1.5, 2.5), method="bounded").x))


def tempered(probabilities: Floats, temperature: float) -> Floats:
    """Probabilities proportional to p^(1/T): more even for T > 1, more certain for T < 1 (v × C)."""
    scaled = np.log(probabilities.clip(min=TINY)) / temperature
    powers = np.exp(scaled - scaled.max(axis=-1, keepdims=True))
    found: Floats = powers / powers.sum(axis=-1, keepdims=True)
    return found


class BlendWarning(UserWarning):
    """Some members of an ensemble can't do what is asked; the others do it."""


@dataclass(frozen=True)
class Member:
    """One candidate of an ensemble: a model for each fold, all with the same inputs."""

    name: str
    weight: float
    temperature: float
    """Makes its probabilities more even (> 1) or more certain (< 1)."""
    fits: Sequence[Fitted]

    def probabilities(self, logits: Iterable[Tensor] | None = None) -> Floats:
        """The mean over the models (n × C) with these logits, by default those of the training graph."""
        given = (fitted.logits() for fitted in self.fits) if logits is None else logits
        return tempered(np.mean([each.softmax(dim=1).numpy() for each in given], axis=0), self.temperature)


class OutOfFold(NamedTuple):
    """Labelled nodes (v), and what models that have not learned from them predict together (v × C).

    ``fold`` says which of a member's models has not learned from each of them (v).
    """

    nodes: Tensor
    probabilities: Tensor
    fold: Tensor


@dataclass(frozen=True)
class Blend:
    """The weighted mean of the members' probabilities; the heaviest member comes first.

    It predicts as :class:`gcnsl.methods.Fitted` does. ``prepared`` and ``model`` are those of the heaviest member.
    """

    members: tuple[Member, ...]
    history: History
    graph: Data
    """The training graph."""
    temperature: float = 1.0
    """That of the mean, which is less sure than its members."""
    known: Tensor | None = None
    """Logits of the training graph's nodes (n × C), if they have been computed."""
    out_of_fold: OutOfFold | None = None
    """By what it was chosen; ``None`` if it was not chosen from others."""

    @property
    def prepared(self) -> Prepared:
        """The method and the graph of the heaviest member."""
        return self.members[0].fits[0].prepared

    @property
    def model(self) -> nn.Module:
        """The first model of the heaviest member."""
        return self.members[0].fits[0].model

    def logits(self) -> Tensor:
        """Logarithms of the probabilities of the training graph's nodes (n × C)."""
        if self.known is not None:
            return self.known
        return self._mean([(member, member.probabilities()) for member in self.members])

    def grown_logits(self, graph: Data) -> Tensor:
        """The same for a graph whose first nodes are those of the training graph.

        Members that can't take new nodes are left out, with a :class:`BlendWarning`; the others share their weight.
        """
        if self.known is not None and same_edges(graph, self.graph):
            return self.known
        able, unable, why = list[tuple[Member, Floats]](), list[Member](), InputError()
        for member in self.members:
            try:
                able.append((member, member.probabilities(grown_logits(member.fits, graph))))
            except InputError as error:  # noqa: PERF203 - one member says nothing of the others
                unable, why = [*unable, member], error
        if not able:
            raise why
        if unable:
            share, names = sum(member.weight for member in unable), ", ".join(member.name for member in unable)
            are = f"{'is' if len(unable) == 1 else 'are'} left out of the ensemble, {share:.0%} of its weight"
            warnings.warn(f"{names} can't predict this graph and {are}: {why}", BlendWarning, stacklevel=4)
        return self._mean(able)

    def _mean(self, parts: list[tuple[Member, Floats]]) -> Tensor:
        weights = np.array([member.weight for member, _ in parts])
        mean = np.tensordot(weights / weights.sum(), np.stack([part for _, part in parts]), 1)
        return log_probabilities(tempered(mean, self.temperature))


def same_edges(graph: Data, other: Data) -> bool:
    """Whether two graphs with the same features have the same nodes and edges, so that predictions are the same."""
    parts, others = edge_parts(graph), edge_parts(other)
    same = parts.keys() == others.keys() and all(part.equal(others[name]) for name, part in parts.items())
    return same and graph.num_nodes == other.num_nodes


def log_probabilities(probabilities: Floats) -> Tensor:
    """Logits of these probabilities (n × C)."""
    return torch.from_numpy(np.log(probabilities.clip(min=TINY))).float()
