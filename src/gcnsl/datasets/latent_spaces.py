"""Geom-GCN's latent spaces: Isomap and struc2vec in the plane, Poincaré's embedding in the hyperbolic disc."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.sparse.csgraph import connected_components, shortest_path
from sklearn.preprocessing import KernelCenterer
from sklearn.utils import check_random_state, gen_batches
from sklearn.utils.extmath import svd_flip

from gcnsl.errors import InputError
from gcnsl.execution import compiled
from gcnsl.sparse import arpack

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FEW = 200
NEGATIVE = 5
"""Number of negative samples per pair of Poincaré's embedding: nodes that are not neighbours of its first node."""
WALKS, STEPS = 10, 80
STAY = 0.3
"""Probability that a walk of struc2vec takes a step within its layer instead of changing layers."""
BLOCK_ENTRIES = 1 << 23
"""About so many pairs of nodes are looked at together."""


def isomap(adjacency: sp.csr_array, *, landmarks: int | None = None, seed: int = 0) -> Floats:
    """Positions of the nodes in the plane (n × 2) whose distances approximate the lengths of the shortest paths.

    Components are embedded separately and placed side by side, further apart than any two nodes of the same component.
    In one with more than ``landmarks`` nodes, only this many random nodes are embedded exactly; the others are placed
    by their distances to these (de Silva and Tenenbaum, 2002). None embeds all exactly: n² distances.
    """
    rng = np.random.default_rng(seed)
    _, component = connected_components(adjacency, directed=False)
    parts = np.split(np.argsort(component, kind="stable"), np.cumsum(np.bincount(component))[:-1])
    placed = [_scaled(adjacency[nodes][:, nodes], landmarks, rng) for nodes in parts]
    gap = 1 + max(float(np.linalg.norm(np.ptp(part, axis=0))) for part in placed)
    positions, left = np.empty((len(component), 2)), 0.0
    for nodes, part in zip(parts, placed, strict=True):
        positions[nodes] = part + np.array([left - part[:, 0].min(), 0])
        left += float(np.ptp(part[:, 0])) + gap
    return positions


def _scaled(adjacency: sp.csr_array, landmarks: int | None, rng: np.random.Generator) -> Floats:
    """Classical multidimensional scaling of the distances to the landmarks of one component.

    Of a small kernel all eigenvectors are computed: in a star or a clique all eigenvalues are equal but one, and LAPACK
    finds none of them if only two are asked for.
    """
    n = adjacency.shape[0]
    if n == 1:
        return np.zeros((1, 2))
    chosen = np.arange(n) if landmarks is None or n <= landmarks else rng.choice(n, landmarks, replace=False)
    distance = np.ascontiguousarray(shortest_path(adjacency, directed=False, unweighted=True, indices=chosen).T)
    kernel = -0.5 * distance**2
    centre = KernelCenterer().fit(kernel[chosen])
    centred = centre.transform(kernel[chosen])
    if len(chosen) <= FEW:
        values, vectors = eigh(centred, driver="evd")
    else:
        values, vectors = arpack(centred, 2, v0=check_random_state(0).uniform(-1, 1, len(chosen)))
    largest = np.argsort(values)[:-3:-1]
    values, (vectors, _) = values[largest], svd_flip(vectors[:, largest], None)  # signs that no solver decides
    positions: Floats = centre.transform(kernel) @ (
        vectors / np.sqrt(np.where(values > 1e-12 * values[0], values, np.inf))
    )
    return positions


def poincare(adjacency: sp.csr_array, *, edges: int | None = None, seed: int = 0) -> Floats:
    """Positions of the nodes in the unit disc (n × 2), by gensim; NaN for nodes without neighbours.

    If ``edges`` is given, the training uses about this many random directed edges, at least one per node.
    """
    model = _gensim("poincare", "PoincareModel")
    positions = np.full((adjacency.shape[0], 2), np.nan)
    known = int((np.diff(adjacency.indptr) > 0).sum())
    negative = NEGATIVE if known > 2 * NEGATIVE else 1
    node, neighbour = adjacency.nonzero()
    rank = np.arange(len(node)) - adjacency.indptr[node]
    pairs = np.stack([node, neighbour])[:, rank < known - negative]  # gensim also needs nodes that are not neighbours
    if edges is not None and pairs.shape[1] > edges:
        pairs = pairs[:, np.random.default_rng(seed).permutation(pairs.shape[1])]
        _, first = np.unique(pairs[0], return_index=True)
        pairs = pairs[:, np.union1d(first, np.arange(edges))]
    if known:
        trained = model([(u, v) for u, v in pairs.T.tolist()], size=2, negative=negative, seed=seed)
        trained.train(epochs=50, batch_size=50)
        positions[trained.kv.index_to_key] = trained.kv.vectors
    return positions


def struc2vec(adjacency: sp.csr_array, *, layers: int = 5, seed: int = 0) -> Floats:
    """Positions of the nodes in the plane (n × 2): close if the degrees around them are similar (Ribeiro et al., 2017).

    1. For every node and k ≤ K (``layers``), collect the degrees of the nodes at distance k in a histogram.
    2. Compare each node with the about 2 log₂ n nodes of the most similar degree. The cost f_k of a pair is f_{k-1}
       plus the dynamic time warping distance of their k-th histograms, where degrees a and b differ by
       max(a, b) / min(a, b) - 1.
    3. Walk at random over K + 1 layers of these pairs: within layer k with weights exp(-f_k); to the next layer with
       weight log(e + the number of the node's pairs in layer k with a weight above average); to the previous one with
       weight 1.
    4. Embed the nodes with Word2Vec, with walks as sentences and nodes as words.
    """
    model = _gensim("word2vec", "Word2Vec")
    pairs, n = candidates(np.diff(adjacency.indptr)), adjacency.shape[0]
    walks = random_walks(pairs, pair_costs(adjacency, pairs, layers), n, np.random.default_rng(seed))
    names = [str(node) for node in range(n)]
    sentences = [[names[node] for node in walk.tolist()] for walk in walks]
    # With more than one worker, the order of updates would not be reproducible.
    training = {"sg": 1, "hs": 1, "negative": 0, "epochs": 5, "window": 10, "min_count": 0, "workers": 1, "seed": seed}
    positions: Floats = model(sentences, vector_size=2, **training).wv[names].astype(np.float64)
    return positions


def candidates(degree: Ints) -> Ints:
    """Pairs of each node with the ⌈log₂ n⌉ nodes before and after it in order of degree, each once (2 × P)."""
    n, order = len(degree), np.argsort(degree, kind="stable")
    reach = min(n - 1, int(np.ceil(np.log2(max(n, 2)))))
    ends = [np.stack([order[:-step], order[step:]]) for step in range(1, reach + 1)]
    return np.concatenate(ends, axis=1) if ends else np.empty((2, 0), dtype=np.int64)


def pair_costs(adjacency: sp.csr_array, pairs: Ints, layers: int) -> Floats:
    """f_k of each pair (K + 1 × P); infinite if one of the two has no nodes at distance k."""
    n, (degrees, level) = adjacency.shape[0], np.unique(np.diff(adjacency.indptr), return_inverse=True)
    levels = sp.csr_array((np.ones(n, np.int32), level, np.arange(n + 1)), shape=(n, len(degrees)))
    near = sp.csr_array(adjacency + sp.eye_array(n), dtype=bool)
    rings: list[list[Any]] = [[] for _ in range(layers + 1)]
    for rows in gen_batches(n, max(1, BLOCK_ENTRIES // n)):
        within = sp.eye_array(n, dtype=bool, format="csr")[rows]
        before = sp.csr_array(within.shape, dtype=bool)
        for ring in rings:
            ring.append((within.astype(np.int32) - before.astype(np.int32)) @ levels)
            before, within = within, within @ near
    costs = np.zeros((layers + 2, pairs.shape[1]))
    for k, ring in enumerate(rings):
        histograms = sp.vstack(ring, format="csr")
        histograms.eliminate_zeros()
        histograms.sort_indices()
        costs[k + 1] = costs[k] + _warps(histograms.indptr, degrees[histograms.indices], histograms.data, pairs)
    return costs[1:]


@compiled()
def _warps(start: Ints, degree: Ints, count: Ints, pairs: Ints) -> Floats:
    """Dynamic time warping distances of pairs of histograms, whose ascending degrees are increased by 0.5."""
    distances = np.full(pairs.shape[1], np.inf)
    for pair in range(pairs.shape[1]):
        one, other = pairs[0, pair], pairs[1, pair]
        first, last = start[other], start[other + 1]
        if start[one] == start[one + 1] or first == last:
            continue
        before = np.full(last - first + 1, np.inf)
        before[0] = 0.0
        for i in range(start[one], start[one + 1]):
            after = np.full(len(before), np.inf)
            for j in range(first, last):
                high, low = max(degree[i], degree[j]) + 0.5, min(degree[i], degree[j]) + 0.5
                cost, place = (high / low - 1) * max(count[i], count[j]), j - first
                after[place + 1] = cost + min(before[place], before[place + 1], after[place])
            before = after
        distances[pair] = before[-1]
    return distances


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


def _gensim(module: str, name: str) -> Any:
    """A model of gensim, which is an extra."""
    try:
        models: Any = __import__(f"gensim.models.{module}", fromlist=[name])
    except ModuleNotFoundError as error:
        raise InputError("the embeddings poincare and struc2vec need gensim: pip install 'gcnsl[geom]'") from error
    return getattr(models, name)
