"""The graph of an index: packages become nodes, words features, dependencies edges; and its file.

The npz file needs no pickle, and always has the same bytes for the same graph.
"""

import io
import json
import re
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gcnsl.errors import InputError
from tools.debian_graph.index import Package, dependencies

WORD = re.compile(r"[a-z][a-z0-9+]+")

STOP_WORDS = frozenset(
    WORD.findall(
        """about after against all also an and another any are around as at be between both but by can do does each
        for from has have how if in into is it its like many more most no non not of off on one only or other out over
        per so some such than that the their them these they this those through to two under up used uses using various
        very via was when where which while who will with within without you your"""
    )
)


@dataclass(frozen=True)
class Rule:
    """What is kept of the index. The fields are in the order in which they are applied."""

    sections: tuple[str, ...] = ("libs", "games", "science", "sound", "graphics", "net", "admin", "x11")
    """The classes; an empty tuple selects every section."""
    section_packages: int = 1
    """Sections with fewer packages than this are left out."""
    most_needed_by: int | None = 40
    """Packages needed by more than this many packages of other sources are left out: they say little about any."""
    one_per_source: bool = True
    """Whether to keep one package per source and section, because packages of one source resemble each other: the one
    that most packages need, then the first by name."""
    word_packages: int = 10
    """A word becomes a feature if at least this many of the remaining packages use it …"""
    word_share: float = 0.1
    """… and at most this share of them."""
    words: int = 2
    """Packages with fewer such words are left out."""
    best_connected: int | None = 330
    """Keep this many packages per section of the largest component, those with the highest degree, then the first by
    name; of these, keep the largest component again."""


class PackageGraph(NamedTuple):
    """The graph as arrays: n packages sorted by name, d words, m edges."""

    x: sp.csr_array
    """Which package uses which word: 0 or 1, n × d."""
    edges: NDArray[np.int64]
    """Each edge once, smaller node number first, sorted: m × 2."""
    y: NDArray[np.int64]
    """The section of each package: n."""
    class_names: list[str]
    words: list[str]
    packages: list[str]


EPOCH = (1980, 1, 1, 0, 0, 0)
"""The date of every entry of a file: the earliest that a zip file can hold."""
BUNDLED = Rule()
FULL = Rule(
    sections=(),
    section_packages=100,
    most_needed_by=None,
    one_per_source=False,
    word_packages=20,
    words=1,
    best_connected=None,
)


def build(packages: Mapping[str, Package], rule: Rule = BUNDLED) -> PackageGraph:
    """Build the largest connected graph of packages that meet the rule.

    Raises:
        InputError: If no two connected packages meet the rule.
    """
    needs = dependencies(packages)
    sections = _sections(packages, rule)
    nodes = _candidates(packages, needs, set(sections), rule)
    words = {name: set(WORD.findall(packages[name].summary.lower())) - STOP_WORDS for name in nodes}
    vocabulary = _vocabulary(words.values(), rule)
    nodes = [name for name in nodes if len(words[name] & vocabulary) >= rule.words]

    edges = _edges(nodes, needs)
    label = np.array([sections.index(packages[name].section) for name in nodes], dtype=np.int64)
    kept = _largest_component(np.ones(len(nodes), dtype=bool), edges)
    if rule.best_connected is not None:
        kept = _largest_component(_best_connected(kept, edges, label, rule.best_connected), edges)
    if kept.sum() < 2:
        found = f"INDEX has {len(packages)} packages, but no two connected ones meet the rule"
        raise InputError(f"{found}: give the index of a whole release ({rule})")

    nodes = [name for name, keep in zip(nodes, kept, strict=True) if keep]
    number = np.cumsum(kept) - 1
    present, y = np.unique(label[kept], return_inverse=True)
    used = sorted(set().union(*(words[name] & vocabulary for name in nodes)))
    return PackageGraph(
        x=_bags([words[name] for name in nodes], used),
        edges=number[edges[kept[edges].all(axis=1)]],
        y=y,
        class_names=[sections[c] for c in present],
        words=used,
        packages=nodes,
    )


def _sections(packages: Mapping[str, Package], rule: Rule) -> list[str]:
    sizes = Counter(package.section for package in packages.values())
    return [s for s in rule.sections or sorted(sizes) if sizes[s] >= rule.section_packages]


def _candidates(
    packages: Mapping[str, Package], needs: Mapping[str, set[str]], sections: set[str], rule: Rule
) -> list[str]:
    """The names of the packages that may become nodes, sorted."""
    needed_by = Counter(name for needed in needs.values() for name in needed)
    names = [name for name, package in packages.items() if package.section in sections]
    if rule.most_needed_by is not None:
        names = [name for name in names if needed_by[name] <= rule.most_needed_by]
    if rule.one_per_source:
        siblings: dict[tuple[str, str], list[str]] = defaultdict(list)
        for name in names:
            siblings[packages[name].source, packages[name].section].append(name)
        names = [min(group, key=lambda name: (-needed_by[name], name)) for group in siblings.values()]
    return sorted(names)


def _vocabulary(bags: Iterable[set[str]], rule: Rule) -> set[str]:
    bags = list(bags)
    used_by = Counter(word for bag in bags for word in bag)
    return {word for word, count in used_by.items() if rule.word_packages <= count <= rule.word_share * len(bags)}


def _edges(nodes: list[str], needs: Mapping[str, set[str]]) -> NDArray[np.int64]:
    number = {name: i for i, name in enumerate(nodes)}
    pairs = ((number[name], number[needed]) for name in nodes for needed in needs[name] if needed in number)
    return np.array(sorted({(min(pair), max(pair)) for pair in pairs}), dtype=np.int64).reshape(-1, 2)


def _largest_component(kept: NDArray[np.bool_], edges: NDArray[np.int64]) -> NDArray[np.bool_]:
    """The largest component among the kept nodes; if several are equally large, the one with the first node."""
    inside = edges[kept[edges].all(axis=1)]
    adjacency = sp.coo_array((np.ones(len(inside)), tuple(inside.T)), shape=(len(kept), len(kept)))
    component = sp.csgraph.connected_components(adjacency, directed=False)[1]
    largest = np.bincount(component[kept]).argmax() if kept.any() else -1
    return np.asarray(component == largest)


def _best_connected(
    kept: NDArray[np.bool_], edges: NDArray[np.int64], label: NDArray[np.int64], number: int
) -> NDArray[np.bool_]:
    """The given number of nodes per class with the most neighbours among the kept nodes; ties go to the first."""
    degree = np.bincount(edges[kept[edges].all(axis=1)].ravel(), minlength=len(kept))
    best = np.zeros_like(kept)
    for c in np.unique(label[kept]):
        members = np.flatnonzero(kept & (label == c))
        best[members[np.argsort(-degree[members], kind="stable")[:number]]] = True
    return best


def _bags(bags: list[set[str]], words: list[str]) -> sp.csr_array:
    column = {word: j for j, word in enumerate(words)}
    rows = [sorted(column[word] for word in bag if word in column) for bag in bags]
    indptr = np.cumsum([0, *map(len, rows)])
    indices = np.concatenate([np.array(row, dtype=np.int64) for row in rows])
    return sp.csr_array((np.ones(len(indices), dtype=np.float32), indices, indptr), shape=(len(bags), len(words)))


def write_npz(path: Path, graph: PackageGraph, provenance: Any) -> None:
    """Write a graph and its provenance for :func:`gcnsl.datasets.loading.load_debian`.

    Entries are stored uncompressed, so that the bytes do not depend on the version of zlib.
    """
    arrays: dict[str, NDArray[Any]] = {
        "word_indptr": _shortest(graph.x.indptr),
        "word_indices": _shortest(graph.x.indices),
        "edges": _shortest(graph.edges),
        "labels": _shortest(graph.y),
        "class_names": np.array(graph.class_names, dtype="S"),
        "words": np.array(graph.words, dtype="S"),
        "packages": np.array(graph.packages, dtype="S"),
        "provenance": np.array(json.dumps(provenance), dtype="S"),
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            content = io.BytesIO()
            np.lib.format.write_array(content, array, version=(1, 0), allow_pickle=False)
            entry = zipfile.ZipInfo(f"{name}.npy", EPOCH)
            entry.create_system = 3  # Unix, on every operating system
            archive.writestr(entry, content.getvalue())


def _shortest(values: NDArray[Any]) -> NDArray[Any]:
    """Convert integers to the smallest unsigned type that holds them all."""
    return values.astype(np.min_scalar_type(values.max()).newbyteorder("<"))
