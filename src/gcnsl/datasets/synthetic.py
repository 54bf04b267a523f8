"""A graph with the homophily as a dial: preferential attachment with class compatibility.

Nodes arrive one by one and each brings edges. The far end of an edge of class-i node u has class i with probability h
and any other class with probability (1 − h)/(C − 1); among the earlier nodes v of that class it is chosen with
probability proportional to deg(v), so that every class has its hubs and degrees have a heavy tail.

No node is visited in Python. Drawing v in proportion to its degree is drawing one *slot* uniformly, where edge e owns
slot 2e (its source) and slot 2e + 1 (its target): a node owns as many slots as it has edge ends. The class of every
slot is known in advance, hence so is the number of earlier slots of any class. A drawn slot that is itself a target
refers to an earlier edge; those references are followed for all edges at once by pointer jumping.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch_geometric.data import Data

from gcnsl.errors import InputError
from gcnsl.graph import from_arrays

Ints = NDArray[np.int64]

FULLEST = 0.9
"""Largest share of the same-class pairs, or of the others, that may be edges: in a full graph nothing is preferred."""

PREFERENTIAL_ROUNDS = 5
"""How often a repeated edge looks for another far end by degree before it may join any free pair of its kind."""

WORDS_A_NODE = 8

_BY_NAME = "synthetic-h"
NAMED_SEED = 42
"""Of the graphs that have a name: whoever says it means the same graph."""


def synthetic(  # noqa: PLR0917 (as one would say it: how many nodes, the dial, then the rest)
    n: int = 1000,
    h: float = 0.5,
    classes: int = 5,
    degree: float = 10.0,
    features: int = 64,
    seed: int = 0,
    *,
    signal: float = 0.25,
) -> Data:
    """Draw a graph whose edge homophily is ``h``.

    The number of edges is round(n · degree / 2) and round(h · edges) of them join nodes of one class, both exactly.
    Classes have equal size (give or take one). Nodes are numbered in the order of their arrival.

    Args:
        n: Number of nodes, at least two a class.
        h: Share of the undirected edges whose ends have the same class, in [0, 1].
        classes: Number of classes, at least 2.
        degree: Mean degree; need not be whole. Below 2, some nodes bring no edge and may stay isolated.
        features: Number of 0/1 features ("words"), at least one a class.
        seed: Same seed, same graph.
        signal: Share of a node's words that are drawn from its own class's, in [0, 1]; the others are drawn from
            all. The default leaves a classifier that sees no edges well above chance and far from certainty: with
            five classes, logistic regression trained on half of the nodes gets 57 % of the others right at
            n = 1,000 and 62 % at n = 5,000.

    Returns:
        The checked graph; see :func:`gcnsl.graph.from_arrays`.

    Raises:
        InputError: If an argument is out of its range, or no simple graph has that many edges of a kind.
    """
    classes = _whole("classes", classes, least=2)
    n = _whole("n", n, least=2 * classes, why=f"two nodes for each of {classes} classes")
    features = _whole("features", features, least=classes, why="every class needs a word of its own")
    seed = _whole("seed", seed, least=0)
    for name, share in (("h", h), ("signal", signal)):
        if not _number(name, share) or not 0 <= share <= 1:
            raise InputError(f"{name}({share}) must be between 0 and 1: it is a share")
    if not _number("degree", degree) or not 0 < degree < n:
        raise InputError(f"degree({degree}) must be above 0 and below n({n}): it is the mean number of neighbours")

    rng = np.random.default_rng(seed)
    y = draw_classes(rng, n, classes)
    edges = draw_edges(rng, y, h, degree)
    x = draw_words(rng, y, features, signal)
    data = from_arrays(x, edges, y)
    data.name = f"synthetic(n={n}, h={h:g}, classes={classes}, degree={degree:g}, features={features}, seed={seed})"
    data.notes = []
    return data


def synthetic_name(h: float) -> str:
    """The name by which :func:`gcnsl.load` draws the graph with homophily h and all else at its default."""
    return f"{_BY_NAME}{h + 0:g}"  # + 0: of the two zeros the usual one


def synthetic_homophily(name: str) -> float | None:
    """The homophily that such a name asks for; ``None`` for other names, and for other ways to write the number."""
    try:
        h = float(name.removeprefix(_BY_NAME)) if name.startswith(_BY_NAME) else math.nan
    except ValueError:
        return None
    return h if 0 <= h <= 1 and name == synthetic_name(h) else None


def draw_classes(rng: np.random.Generator, n: int, classes: int) -> Ints:
    """Classes of equal size in random order, except that node c < C has class c: the seed its class grows from."""
    y = np.arange(n) % classes
    rng.shuffle(y[classes:])
    return y


def draw_edges(rng: np.random.Generator, y: Ints, h: float, degree: float) -> Ints:
    """Simple undirected edges (2 × E, each once, u < v, sorted), of which round(h · E) join nodes of one class."""
    n, classes = len(y), int(y.max()) + 1
    edges = max(1, round(n * degree / 2))
    same = np.zeros(edges, dtype=bool)
    same[: round(h * edges)] = True
    _check_room(y, int(same.sum()), edges)
    rng.shuffle(same)

    source = classes + np.arange(edges) * (n - classes) // edges
    wanted = np.where(same, y[source], (y[source] + rng.integers(1, classes, edges)) % classes)
    slots = slots_by_class(y[source], wanted, classes)
    target = attach(source, wanted, slots, rng.random(edges))
    return np.stack(np.divmod(mend_repeats(rng, y, source, target, slots), n))


class Slots(NamedTuple):
    """The 2E slots grouped by class: those of class c are ``order[first[c]:first[c + 1]]``, earliest first."""

    order: Ints
    first: Ints


def slots_by_class(source_class: Ints, target_class: Ints, classes: int) -> Slots:
    """Group slot 2e (the source of edge e) and slot 2e + 1 (its target) by class."""
    slot_class = np.empty(2 * len(source_class), dtype=np.min_scalar_type(classes))  # NumPy sorts short ones by radix
    slot_class[0::2], slot_class[1::2] = source_class, target_class
    first = np.concatenate([[0], np.cumsum(np.bincount(slot_class, minlength=classes))])
    return Slots(np.argsort(slot_class, kind="stable"), first)


def attach(source: Ints, wanted: Ints, slots: Slots, draw: NDArray[np.float64]) -> Ints:
    """The target of each edge: the owner of a uniformly drawn earlier slot of the wanted class.

    With r slots of that class before the edge's own target slot, ⌊draw · (r + 1)⌋ is 0 for the seed node of the class
    and k for the k-th of those slots.

    Args:
        source: The edges' sources (E), in order of arrival.
        wanted: The classes of their targets (E); node c must be the seed of class c.
        slots: The slots of these edges, grouped.
        draw: Uniform in [0, 1) (E).
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


def mend_repeats(rng: np.random.Generator, y: Ints, source: Ints, target: Ints, slots: Slots) -> Ints:
    """Redraw loops and repeated edges until there are none, keeping the number of edges of either kind.

    The earliest nodes meet too few others to link to, so what is redrawn may link to nodes that came later.

    Returns:
        The keys u · n + v, u < v, of the edges, sorted.
    """
    n, classes = len(y), len(slots.first) - 1
    keys = np.sort(_key(source, target, n))
    far, near = np.divmod(keys, n)
    bad = far == near
    bad[1:] |= keys[1:] == keys[:-1]
    keys, near, far = keys[~bad], near[bad], far[bad]
    members = np.argsort(y, kind="stable")
    begin = np.concatenate([[0], np.cumsum(np.bincount(y))])

    rounds = 0
    while len(near):
        far_class = y[far]
        if rounds < PREFERENTIAL_ROUNDS:
            slot = slots.order[_draw_between(rng, slots.first[far_class], slots.first[far_class + 1])]
            far = np.where(slot % 2 == 0, source[slot // 2], target[slot // 2])
        else:
            other = np.where(y[near] == far_class, 0, rng.integers(1, classes, len(near)))
            near = rng.integers(0, n, len(near))
            far_class = (y[near] + other) % classes
            far = members[_draw_between(rng, begin[far_class], begin[far_class + 1])]
        keys, free = _add_free(keys, _key(near, far, n), near != far)
        near, far = near[~free], far[~free]
        rounds += 1
    return keys


def _add_free(keys: Ints, offered: Ints, usable: NDArray[np.bool_]) -> tuple[Ints, NDArray[np.bool_]]:
    """Add to the sorted keys those offered that are usable, not among them, and the first of their kind."""
    free = np.zeros(len(offered), dtype=bool)
    free[np.unique(offered, return_index=True)[1]] = True
    free &= usable & (np.searchsorted(keys, offered, "left") == np.searchsorted(keys, offered, "right"))
    added = np.sort(offered[free])
    return np.insert(keys, np.searchsorted(keys, added), added), free


def draw_words(rng: np.random.Generator, y: Ints, features: int, signal: float) -> NDArray[np.float32]:
    """0/1 bags of words (n × features): word w belongs to class ⌊w · C / features⌋, so that every class has a block.

    A node draws :data:`WORDS_A_NODE` words (fewer where there are few words at all), each from its own class's block
    with probability ``signal``, else from all; a word drawn twice counts once.
    """
    n, classes = len(y), int(y.max()) + 1
    begin = -(-np.arange(classes + 1) * features // classes)
    draws = max(1, min(WORDS_A_NODE, features // 4))
    x = np.zeros((n, features), dtype=np.float32)
    for _ in range(draws):
        own = rng.random(n) < signal
        word = _draw_between(rng, np.where(own, begin[y], 0), np.where(own, begin[y + 1], features))
        x[np.arange(n), word] = 1
    return x


def _draw_between(rng: np.random.Generator, begin: Ints, end: Ints) -> Ints:
    """Uniform integers in [begin, end), elementwise."""
    return np.minimum(begin + (rng.random(len(begin)) * (end - begin)).astype(np.int64), end - 1)


def _key(u: Ints, v: Ints, n: int) -> Ints:
    return np.minimum(u, v) * n + np.maximum(u, v)


def _check_room(y: Ints, same: int, edges: int) -> None:
    """A simple graph has only so many pairs of nodes of one class, and of two."""
    sizes = np.bincount(y)
    pairs_of_one = int((sizes * (sizes - 1) // 2).sum())
    pairs_of_two = len(y) * (len(y) - 1) // 2 - pairs_of_one
    for needed, pairs, kind in ((same, pairs_of_one, "the same class"), (edges - same, pairs_of_two, "two classes")):
        if needed > FULLEST * pairs:
            raise InputError(
                f"degree and h ask for {needed} edges between nodes of {kind}, but n({len(y)}) nodes in "
                f"classes({len(sizes)}) have {pairs} such pairs, of which {FULLEST:.0%} can be used: "
                "lower degree or raise n"
            )


def _whole(name: str, value: Any, *, least: int, why: str = "") -> int:
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool):
        raise InputError(f"{name}({value!r}) must be a whole number")
    if value < least:
        raise InputError(f"{name}({value}) must be >= {least}" + (f": {why}" if why else ""))
    return int(value)


def _number(name: str, value: Any) -> bool:
    if not isinstance(value, (int, float, np.integer, np.floating)) or isinstance(value, bool):
        raise InputError(f"{name}({value!r}) must be a number")
    return bool(np.isfinite(value))
