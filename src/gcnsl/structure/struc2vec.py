# ruff: noqa: PLR0917 - compiled functions take their arguments by position
# mypy: disable-error-code="untyped-decorator"
"""struc2vec (Ribeiro et al., 2017): nodes are near when their surroundings have like degrees, wherever they are.

1. For every node and k ≤ K the degrees of the nodes at distance k are collected, as a histogram.
2. Nodes are compared with those of nearest degree, about 2 log n of them. The cost f_k of a pair is that of layer
   k - 1 plus the dynamic time warping of their k-th histograms, where degrees a and b differ by
   max(a, b) / min(a, b) - 1.
3. Random walks over K + 1 layers of these pairs: within layer k with weights exp(-f_k), to the next one with weight
   log(e + the number of a node's pairs there that weigh more than the average), back with weight 1.
4. The walks are sentences, the nodes words: Word2Vec makes them positions.
"""

import numba
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gcnsl.errors import InputError
from gcnsl.structure.neighbourhood import Ints, Positions

Floats = NDArray[np.float64]

WALKS, STEPS, WINDOW, EPOCHS = 10, 80, 10, 5
STAY = 0.3
"""How likely a walk takes a step in its layer, rather than change it."""


def struc2vec(adjacency: sp.csr_array, *, layers: int = 5, seed: int = 0) -> Positions:
    """Positions in the plane (n × 2) of the nodes of a graph (n × n, symmetric, without loops).

    Args:
        adjacency: The graph.
        layers: Largest distance at which surroundings are compared (K).
        seed: Of the walks and of Word2Vec.
    """
    try:
        from gensim.models import Word2Vec
    except ModuleNotFoundError as error:
        raise InputError("embedding('struc2vec') needs gensim: pip install 'gcnsl[geom]'") from error
    start, near = adjacency.indptr.astype(np.int64), adjacency.indices.astype(np.int64)
    pairs = candidates(np.diff(start))
    costs = pair_costs(start, near, pairs, layers)
    walks = random_walks(pairs, costs, len(start) - 1, np.random.default_rng(seed))
    names = [str(node) for node in range(len(start) - 1)]
    model = Word2Vec(
        [[names[node] for node in walk] for walk in walks.tolist()],
        vector_size=2,
        window=WINDOW,
        min_count=0,
        sg=1,
        hs=1,
        negative=0,
        workers=1,  # with more, the order of updates is a matter of chance
        epochs=EPOCHS,
        seed=seed,
    )
    positions: Positions = model.wv[names].astype(np.float64)
    return positions


def candidates(degree: Ints) -> Ints:
    """Each node with the ⌈log₂ n⌉ nodes before and after it in the order of degrees (2 × P, either order once)."""
    n = len(degree)
    order = np.argsort(degree, kind="stable")
    reach = min(n - 1, int(np.ceil(np.log2(max(n, 2)))))
    place = np.arange(n)
    ends = [np.stack([order[place[:-step]], order[place[step:]]]) for step in range(1, reach + 1)]
    return np.concatenate(ends, axis=1) if ends else np.empty((2, 0), dtype=np.int64)


def pair_costs(start: Ints, near: Ints, pairs: Ints, layers: int) -> Floats:
    """f_k of each pair (K + 1 × P); infinite where one of the two has no node at distance k."""
    levels, level = np.unique(np.diff(start), return_inverse=True)
    rings = _rings(start, near, level.astype(np.int64), len(levels), layers)
    costs: Floats = _costs(pairs, *rings, levels.astype(np.float64), layers)
    return costs


def random_walks(pairs: Ints, costs: Floats, n: int, rng: np.random.Generator) -> Ints:
    """All walks (n · WALKS × STEPS), each step of all of them at once."""
    layers = [_Layer(pairs, cost, n) for cost in costs]
    top = len(layers) - 1
    node = np.tile(np.arange(n), WALKS)
    level, length = np.zeros((2, len(node)), dtype=np.int64)
    walks = np.empty((len(node), STEPS), dtype=np.int64)
    walks[:, 0] = node
    while (length < STEPS - 1).any():
        stays = rng.random(len(node)) < STAY
        moved, before = (length < STEPS - 1) & stays, level.copy()
        length[moved] += 1
        for k, layer in enumerate(layers):
            here = np.flatnonzero(moved & (before == k))
            node[here] = walks[here, length[here]] = layer.step(node[here], rng)
            here = np.flatnonzero(~stays & (before == k))
            up = rng.random(len(here)) < layer.up(node[here])
            above = np.where(layers[min(k + 1, top)].reaches(node[here]), min(k + 1, top), k)
            level[here] = np.where(up, above, max(k - 1, 0))
    return walks


class _Layer:
    """One layer of pairs, as weighted lists of neighbours."""

    def __init__(self, pairs: Ints, cost: Floats, n: int) -> None:
        known = np.isfinite(cost)
        source, target = np.concatenate([pairs[:, known], pairs[::-1, known]], axis=1)
        cost = np.tile(cost[known], 2)
        weight = np.exp(-cost)
        heavy = np.bincount(source[weight > weight.mean()], minlength=n) if len(weight) else np.zeros(n)
        self.rise = np.log(np.e + heavy)

        lowest = np.full(n, np.inf)
        np.minimum.at(lowest, source, cost)
        share = np.exp(lowest[source] - cost)  # in proportion to a node's weights, however small they all are
        order = np.argsort(source, kind="stable")
        self.target = target[order]
        self.begin = np.concatenate([[0], np.cumsum(np.bincount(source, minlength=n))])
        self.total = np.concatenate([[0.0], np.cumsum(share[order])])

    def reaches(self, node: Ints) -> NDArray[np.bool_]:
        return self.begin[node + 1] > self.begin[node]

    def up(self, node: Ints) -> Floats:
        rise: Floats = self.rise[node]
        return rise / (1 + rise)

    def step(self, node: Ints, rng: np.random.Generator) -> Ints:
        """A neighbour, drawn by weight; a node without one stays."""
        first, last = self.begin[node], self.begin[node + 1]
        low, high = self.total[first], self.total[last]
        drawn = np.searchsorted(self.total, low + rng.random(len(node)) * (high - low), side="right") - 1
        lonely = first == last
        target = self.target[np.where(lonely, 0, np.clip(drawn, first, last - 1))] if len(self.target) else node
        return np.where(lonely, node, target)


_compiled = numba.njit(nogil=True, cache=True)


@_compiled
def _rings(start: Ints, near: Ints, level: Ints, levels: int, layers: int) -> tuple[Ints, Ints, Ints]:
    """For node u and distance k the degrees there, as (level, count): those of (K + 1) u + k in one list of all."""
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


@_compiled
def _costs(pairs: Ints, begin: Ints, which: Ints, count: Ints, levels: Floats, layers: int) -> Floats:
    costs = np.full((layers + 1, pairs.shape[1]), np.inf)
    for pair in range(pairs.shape[1]):
        total = 0.0
        for k in range(layers + 1):
            a, b = pairs[0, pair] * (layers + 1) + k, pairs[1, pair] * (layers + 1) + k
            if begin[a] == begin[a + 1] or begin[b] == begin[b + 1]:
                break
            total += _warp(
                levels[which[begin[a] : begin[a + 1]]],
                count[begin[a] : begin[a + 1]],
                levels[which[begin[b] : begin[b + 1]]],
                count[begin[b] : begin[b + 1]],
            )
            costs[k, pair] = total
    return costs


@_compiled
def _warp(degree: Floats, count: Ints, other: Floats, other_count: Ints) -> float:
    """Dynamic time warping of two histograms, each a rising sequence of degrees with how often it occurs.

    A half is added to degrees, for those that are 0.
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
