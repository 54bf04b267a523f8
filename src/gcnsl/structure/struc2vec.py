"""struc2vec (Ribeiro et al., 2017): nodes are close if the degrees around them are similar, wherever they are.

1. For every node and k ≤ K, collect the degrees of the nodes at distance k in a histogram.
2. Compare each node with the about 2 log₂ n nodes of the most similar degree. The cost f_k of a pair is f_{k-1} plus
   the dynamic time warping distance of their k-th histograms, where degrees a and b differ by
   max(a, b) / min(a, b) - 1.
3. Walk at random over K + 1 layers of these pairs: within layer k with weights exp(-f_k); to the next layer with weight
   log(e + the number of the node's pairs in layer k with a weight above average); to the previous one with weight 1.
4. Embed the nodes with Word2Vec, with walks as sentences and nodes as words.
"""

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gcnsl.errors import InputError
from gcnsl.execution import compiled
from gcnsl.structure.embeddings import Positions

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

WALKS, STEPS, WINDOW, EPOCHS = 10, 80, 10, 5
STAY = 0.3
"""Probability that a walk takes a step within its layer instead of changing layers."""


def struc2vec(adjacency: sp.csr_array, *, layers: int = 5, seed: int = 0) -> Positions:
    """Positions of the nodes of a symmetric graph without loops in the plane (n × 2), for K = ``layers``."""
    try:
        from gensim.models import Word2Vec
    except ModuleNotFoundError as error:
        raise InputError("embedding('struc2vec') needs gensim: pip install 'gcnsl[geom]'") from error
    start, near = adjacency.indptr.astype(np.int64), adjacency.indices.astype(np.int64)
    pairs = candidates(np.diff(start))
    costs = pair_costs(start, near, pairs, layers)
    walks = random_walks(pairs, costs, len(start) - 1, np.random.default_rng(seed))
    names = [str(node) for node in range(len(start) - 1)]
    # With more than one worker, the order of updates would not be reproducible.
    training = {"sg": 1, "hs": 1, "negative": 0, "epochs": EPOCHS, "workers": 1, "seed": seed}
    model = Word2Vec(_Sentences(walks, names), vector_size=2, window=WINDOW, min_count=0, **training)
    positions: Positions = model.wv[names].astype(np.float64)
    return positions


def candidates(degree: Ints) -> Ints:
    """Pairs of each node with the ⌈log₂ n⌉ nodes before and after it in order of degree, each once (2 × P)."""
    n = len(degree)
    order = np.argsort(degree, kind="stable")
    reach = min(n - 1, int(np.ceil(np.log2(max(n, 2)))))
    ends = [np.stack([order[:-step], order[step:]]) for step in range(1, reach + 1)]
    return np.concatenate(ends, axis=1) if ends else np.empty((2, 0), dtype=np.int64)


@compiled()
def pair_costs(start: Ints, near: Ints, pairs: Ints, layers: int) -> Floats:
    """f_k of each pair (K + 1 × P); infinite if one of the two has no nodes at distance k."""
    degree = np.diff(start)
    levels = np.unique(degree)
    begin, which, count = _rings(start, near, np.searchsorted(levels, degree), len(levels), layers)
    costs = np.full((layers + 1, pairs.shape[1]), np.inf)
    for pair in range(pairs.shape[1]):
        total = 0.0
        for k in range(layers + 1):
            a, b = pairs[0, pair] * (layers + 1) + k, pairs[1, pair] * (layers + 1) + k
            if begin[a] == begin[a + 1] or begin[b] == begin[b + 1]:
                break
            one, other = slice(begin[a], begin[a + 1]), slice(begin[b], begin[b + 1])
            total += _warp(levels[which[one]], count[one], levels[which[other]], count[other])
            costs[k, pair] = total
    return costs


def random_walks(pairs: Ints, costs: Floats, n: int, rng: np.random.Generator) -> NDArray[np.int32]:
    """WALKS walks from every node (n · WALKS × STEPS), all computed step by step together."""
    layers = [_Layer(pairs, cost, n) for cost in costs]
    top = len(layers) - 1
    node = np.tile(np.arange(n), WALKS)
    level, length = np.zeros((2, len(node)), dtype=np.int64)
    walks = np.empty((len(node), STEPS), dtype=np.int32)
    walks[:, 0] = node
    while (length < STEPS - 1).any():
        stays = rng.random(len(node)) < STAY
        moved, before = (length < STEPS - 1) & stays, level.copy()
        length[moved] += 1
        for k, layer in enumerate(layers):
            here = np.flatnonzero(moved & (before == k))
            node[here] = walks[here, length[here]] = layer.step(node[here], rng)
            here = np.flatnonzero(~stays & (before == k))
            up = rng.random(len(here)) < layer.up[node[here]]
            above = np.where(layers[min(k + 1, top)].size[node[here]] > 0, min(k + 1, top), k)
            level[here] = np.where(up, above, max(k - 1, 0))
    return walks


class _Sentences:
    """Walks as sentences, made one by one: all at once, their words would take ten times the memory."""

    def __init__(self, walks: NDArray[np.int32], names: list[str]) -> None:
        self.walks, self.names = walks, names

    def __iter__(self) -> Iterator[list[str]]:
        return ([self.names[node] for node in walk.tolist()] for walk in self.walks)


class _Layer:
    """One layer of pairs as weighted adjacency lists."""

    def __init__(self, pairs: Ints, cost: Floats, n: int) -> None:
        known = np.isfinite(cost)
        source, target = np.concatenate([pairs[:, known], pairs[::-1, known]], axis=1)
        cost = np.tile(cost[known], 2)
        weight = np.exp(-cost)
        heavy = np.bincount(source[weight > weight.mean()], minlength=n) if len(weight) else np.zeros(n)
        rise = np.log(np.e + heavy)
        self.up = rise / (1 + rise)  # the probability of the next layer, not the previous one

        lowest = np.full(n, np.inf)
        np.minimum.at(lowest, source, cost)
        share = np.exp(lowest[source] - cost)  # proportional to the weights of a node, even if all of them are tiny
        order = np.argsort(source, kind="stable")
        self.target = target[order]
        self.size = np.bincount(source, minlength=n)
        self.begin = np.concatenate([[0], np.cumsum(self.size)])
        self.total = np.concatenate([[0.0], np.cumsum(share[order])])

    def step(self, node: Ints, rng: np.random.Generator) -> Ints:
        """A random neighbour for each node, drawn by weight; the node itself if it has none."""
        first, last = self.begin[node], self.begin[node + 1]
        low, high = self.total[first], self.total[last]
        drawn = np.searchsorted(self.total, low + rng.random(len(node)) * (high - low), side="right") - 1
        lonely = first == last
        target = self.target[np.where(lonely, 0, np.clip(drawn, first, last - 1))] if len(self.target) else node
        return np.where(lonely, node, target)


@compiled()
def _rings(start: Ints, near: Ints, level: Ints, levels: int, layers: int) -> tuple[Ints, Ints, Ints]:
    """Histograms (level, count) of the degrees at distance k from node u, at begin[(K + 1) u + k] in one list."""
    n = len(start) - 1
    begin = np.zeros(n * (layers + 1) + 1, dtype=np.int64)
    which, count = np.empty(1024, dtype=np.int64), np.empty(1024, dtype=np.int64)
    seen, queue = np.full(n, -1, dtype=np.int64), np.empty(n, dtype=np.int64)
    size = np.zeros(levels, dtype=np.int64)
    end = 0
    for u in range(n):
        seen[u], queue[0] = u, u
        head, tail = 0, 1
        for k in range(layers + 1):
            ring_end = tail
            for place in range(head, ring_end):
                size[level[queue[place]]] += 1
                for v in near[start[queue[place]] : start[queue[place] + 1]]:
                    if seen[v] != u:
                        seen[v] = u
                        queue[tail] = v
                        tail += 1
            head = ring_end
            if end + levels > len(which):
                which = np.concatenate((which, np.empty(len(which) + levels, dtype=np.int64)))
                count = np.concatenate((count, np.empty(len(count) + levels, dtype=np.int64)))
            for a in range(levels):
                if size[a]:
                    which[end], count[end] = a, size[a]
                    size[a] = 0
                    end += 1
            begin[u * (layers + 1) + k + 1] = end
    return begin, which[:end], count[:end]


@compiled()
def _warp(degree: Ints, count: Ints, other: Ints, other_count: Ints) -> float:
    """Dynamic time warping distance of two histograms, each with ascending degrees and their counts.

    Degrees are increased by 0.5, because they may be 0.
    """
    before = np.full(len(other) + 1, np.inf)
    before[0] = 0.0
    for i in range(len(degree)):
        after = np.full(len(other) + 1, np.inf)
        for j in range(len(other)):
            high, low = max(degree[i], other[j]) + 0.5, min(degree[i], other[j]) + 0.5
            cost = (high / low - 1) * max(count[i], other_count[j])
            after[j + 1] = cost + min(before[j], before[j + 1], after[j])
        before = after
    return float(before[-1])
