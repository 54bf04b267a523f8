"""Synthetic graphs of any homophily: preferential attachment with class compatibility.

Nodes arrive one after another and bring edges. The target of an edge whose source has class i has class i with
probability h and each other class with probability (1 − h)/(C − 1). Among the earlier nodes v of that class, it is
drawn with probability proportional to deg(v), so that every class has hubs and the degrees have a heavy tail.

There is no loop over nodes in Python. Edge e has the *slots* 2e (for its source) and 2e + 1 (for its target). A node
owns one slot per edge, so that the owner of a uniformly drawn slot is a node drawn in proportion to its degree. The
class of every slot is known in advance, and with it the number of earlier slots of each class. A drawn slot that is a
target refers to an earlier edge; these references are resolved for all edges at once by pointer jumping.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch_geometric.data import Data

from gcnsl.checks import check_number, check_seed, check_whole
from gcnsl.errors import InputError
from gcnsl.graph import from_arrays

Ints = NDArray[np.int64]

FULLEST = 0.9
"""Largest share of the pairs of one class, or of two classes, that may be edges: a full graph leaves no choice."""

PREFERENTIAL_ROUNDS = 5
"""How often the target of a repeated edge is redrawn by degree before any free pair of its kind is taken."""

WORDS_PER_NODE = 8


def synthetic(  # noqa: PLR0917 - the first arguments are the most common ones
    n: int = 1000,
    h: float = 0.5,
    classes: int = 5,
    degree: float = 10.0,
    features: int = 64,
    seed: int = 0,
    *,
    signal: float = 0.25,
) -> Data:
    """Draw a graph with edge homophily ``h``.

    The graph has exactly round(n · degree / 2) edges, of which exactly round(h · edges) join nodes of the same class.
    The sizes of the classes differ by at most one. Nodes are numbered in the order of their arrival.

    Args:
        n: Number of nodes, at least two per class.
        h: Share of the undirected edges that join nodes of the same class, in [0, 1].
        classes: Number of classes, at least 2.
        degree: Mean degree, above 0 and below n. Below 2, some nodes may have no edges.
        features: Number of 0/1 features ("words"), at least one per class.
        signal: Share of a node's words that are drawn from the words of its class, in [0, 1]; the others are drawn
            from all words. With the default and five classes, logistic regression trained on the words of half of the
            nodes is right for 57 % of the others at n = 1,000 and for 62 % at n = 5,000.
    """
    classes = check_whole("classes", classes, least=2)
    n = check_whole("n", n, least=2 * classes, why=f"there are {classes} classes of at least two nodes")
    features = check_whole("features", features, least=classes, why="every class needs a word of its own")
    seed = check_seed(seed)
    h, signal = (check_number(name, share, least=0, most=1) for name, share in (("h", h), ("signal", signal)))
    degree = check_number("degree", degree, above=0, below=n, why="it is the mean number of neighbours")

    rng = np.random.default_rng(seed)
    y = draw_classes(rng, n, classes)
    edges = draw_edges(rng, y, h, degree)
    data = from_arrays(draw_words(rng, y, features, signal), edges, y)
    data.notes = []
    data.name = f"synthetic(n={n}, h={h:g}, classes={classes}, degree={degree:g}, features={features}, seed={seed})"
    return data


def draw_classes(rng: np.random.Generator, n: int, classes: int) -> Ints:
    """Draw classes of equal size in random order, except that each node c < C has class c and is its first node."""
    y = np.arange(n) % classes
    rng.shuffle(y[classes:])
    return y


def draw_edges(rng: np.random.Generator, y: Ints, h: float, degree: float) -> Ints:
    """Draw simple undirected edges (2 × E, each once, u < v, sorted); round(h · E) join nodes of the same class."""
    n, sizes = len(y), np.bincount(y)
    edges, classes = max(1, round(n * degree / 2)), len(sizes)
    agreeing = round(h * edges)
    within = int((sizes * (sizes - 1) // 2).sum())
    between = n * (n - 1) // 2 - within
    for needed, pairs, kind in ((agreeing, within, "the same class"), (edges - agreeing, between, "two classes")):
        if needed > FULLEST * pairs:
            raise InputError(
                f"degree and h ask for {needed} edges between nodes of {kind}, but n({n}) nodes in classes({classes}) "
                f"have {pairs} such pairs, of which {FULLEST:.0%} can be used: lower degree or raise n"
            )
    same = np.arange(edges) < agreeing
    rng.shuffle(same)
    source = classes + np.arange(edges) * (n - classes) // edges
    wanted = np.where(same, y[source], (y[source] + rng.integers(1, classes, edges)) % classes)
    slots = Groups.of(np.stack([y[source], wanted], axis=1).ravel(), classes)
    target = attach(source, wanted, slots, rng.random(edges))
    return redraw_repeats(rng, y, source, target, slots)


class Groups(NamedTuple):
    """Numbers 0, 1, … grouped by class: those of class c are ``order[first[c]:first[c + 1]]``, in rising order."""

    order: Ints
    first: Ints

    @classmethod
    def of(cls, kinds: Ints, classes: int) -> "Groups":
        """Group the positions of an array by the class that it holds there."""
        short = kinds.astype(np.min_scalar_type(classes))  # NumPy sorts short integers by radix
        first = np.concatenate([[0], np.cumsum(np.bincount(short, minlength=classes))])
        return cls(np.argsort(short, kind="stable"), first)

    def draw(self, rng: np.random.Generator, kinds: Ints) -> Ints:
        """Draw a uniform member of each of these classes."""
        return self.order[_draw_between(rng, self.first[kinds], self.first[kinds + 1])]


def attach(source: Ints, wanted: Ints, slots: Groups, draw: NDArray[np.float64]) -> Ints:
    """Return the target of each edge (E): the owner of an earlier slot of the wanted class, which ``draw`` selects.

    If there are r such slots, ⌊draw · (r + 1)⌋ = k > 0 selects the k-th of them, and 0 the first node of the class,
    which is node c for class c.
    """
    rank = np.empty_like(slots.order)
    rank[slots.order] = np.arange(len(slots.order))
    begin = slots.first[wanted]
    earlier = rank[1::2] - begin
    drawn = np.minimum((draw * (earlier + 1)).astype(np.int64), earlier)
    slot = slots.order[begin + drawn - 1]

    owner = np.where(drawn == 0, wanted, source[slot // 2])
    refers = (drawn > 0) & (slot % 2 == 1)
    edge = np.where(refers, slot // 2, np.arange(len(source)))
    while True:
        further = edge[edge]
        if np.array_equal(further, edge):
            return owner[edge]
        edge = further


def redraw_repeats(rng: np.random.Generator, y: Ints, source: Ints, target: Ints, slots: Groups) -> Ints:
    """Redraw loops and repeated edges until there are none, keeping the numbers of edges within and between classes.

    A redrawn edge may join a node to a later one, because the first nodes have too few earlier ones. The edges are
    returned as u < v (2 × E), sorted.
    """
    n, classes = len(y), len(slots.first) - 1
    keys = np.sort(_key(source, target, n))
    far, near = np.divmod(keys, n)
    bad = far == near
    bad[1:] |= keys[1:] == keys[:-1]
    keys, near, far = keys[~bad], near[bad], far[bad]
    members = Groups.of(y, classes)
    rounds = 0
    while len(near):
        if rounds < PREFERENTIAL_ROUNDS:
            slot = slots.draw(rng, y[far])
            far = np.where(slot % 2 == 0, source[slot // 2], target[slot // 2])
        else:
            other = np.where(y[near] == y[far], 0, rng.integers(1, classes, len(near)))
            near = rng.integers(0, n, len(near))
            far = members.draw(rng, (y[near] + other) % classes)
        offered = _key(near, far, n)
        free = (near != far) & ~np.isin(offered, keys)
        free[np.setdiff1d(np.arange(len(offered)), np.unique(offered, return_index=True)[1])] = False
        keys = np.sort(np.concatenate([keys, offered[free]]))
        near, far = near[~free], far[~free]
        rounds += 1
    return np.stack(np.divmod(keys, n))


def draw_words(rng: np.random.Generator, y: Ints, features: int, signal: float) -> NDArray[np.float32]:
    """Draw 0/1 bags of words (n × features). Word w belongs to class ⌊w · C / features⌋.

    A node draws :data:`WORDS_PER_NODE` words, or fewer if there are few features: each from the words of its class with
    probability ``signal``, else from all words. A word that is drawn twice counts once.
    """
    n, classes = len(y), int(y.max()) + 1
    begin = -(-np.arange(classes + 1) * features // classes)
    x = np.zeros((n, features), dtype=np.float32)
    for _ in range(max(1, min(WORDS_PER_NODE, features // 4))):
        own = rng.random(n) < signal
        word = _draw_between(rng, np.where(own, begin[y], 0), np.where(own, begin[y + 1], features))
        x[np.arange(n), word] = 1
    return x


def _draw_between(rng: np.random.Generator, begin: Ints, end: Ints) -> Ints:
    """Draw uniform integers in [begin, end), elementwise."""
    return np.minimum(begin + (rng.random(len(begin)) * (end - begin)).astype(np.int64), end - 1)


def _key(u: Ints, v: Ints, n: int) -> Ints:
    return np.minimum(u, v) * n + np.maximum(u, v)
