"""The graphs that are known by name, and the files of those of the literature. Nothing here loads torch."""

import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gcnsl.checks import check_choice, check_flag, did_you_mean
from gcnsl.datasets.dataset_files import find
from gcnsl.errors import ArgumentError

GEOM_GCN_RUNS = 10
_PLANETOID_PARTS = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
_NODES, EDGES_FILE = "out1_node_feature_label.txt", "out1_graph_edges.txt"
_TWITCH_PARTS = ("edges.csv", "features.json", "target.csv")

_CITESEER_NOTES = (
    "15 nodes have neither features nor a label in the original files; as usual in the literature, they "
    "have class 0, and the splits contain them",
    "geom-gcn splits 4 and 5 leave out 1207 nodes outside the largest component",
)
_CORNELL_NOTE = (
    "Cornell's edges with Texas's features and labels, a mistake in the original files: this is the graph "
    "in the paper's table (h = .30); `cornell` is the real one"
)
_WIKIPEDIA_NOTE = (
    "Contains groups of nodes with the same neighbours and label, split between training and test: "
    "accuracies are optimistic (Platonov et al., 2023)"
)
_FILTERED_NOTE = "Without the nodes whose neighbours and label are those of another (Platonov et al., 2023)"
_MINESWEEPER_NOTE = "80 % of the nodes are in one class, half of all hide their features; results are usually ROC-AUC"
_FACEBOOK_NOTE = "The class is the gender, which 97 nodes do not tell; the features are codes, one-hot encoded"
_MISSING_CLASS_NOTE = (
    "One class has a single node (25): it can't be learnt in geom-gcn splits where that is not a training node"
)


def geom_gcn_paths(stem: str) -> list[str]:
    """Return the paths of Geom-GCN's ten splits. They are 48/32/20 % splits, in spite of the numbers in their names."""
    return [f"splits/{stem}_split_0.6_0.2_{run}.npz" for run in range(GEOM_GCN_RUNS)]


@dataclass(frozen=True)
class Benchmark:
    """A graph of the literature: its files and notes about it."""

    family: str
    """The format of its files, such as ``planetoid``; ``masked-npz`` is ``npz`` with splits of its own."""
    stem: str
    """Its name in the paths of its files."""
    notes: tuple[str, ...] = ()

    @property
    def paths(self) -> list[str]:
        """The paths of its files, including the splits where torch_geometric's reader needs them."""
        if self.family == "planetoid":
            return [f"planetoid/ind.{self.stem}.{part}" for part in _PLANETOID_PARTS]
        if self.family == "npz":
            return [f"heterophilous/{self.stem}.npz"]
        if self.family == "masked-npz":
            return [f"practice/{self.stem}.npz"]
        if self.family == "facebook":
            return [f"practice/facebook100-{self.stem}.mat"]
        if self.family == "twitch":
            return [f"practice/twitch-{self.stem}/musae_{self.stem}_{part}" for part in _TWITCH_PARTS]
        return [*(f"geom-gcn/{self.stem}/{name}" for name in (_NODES, EDGES_FILE)), *geom_gcn_paths(self.split_stem)]

    @property
    def split_stem(self) -> str:
        """Its name in the paths of its Geom-GCN splits."""
        return self.stem.removesuffix("_directed")

    @property
    def splits(self) -> tuple[str, ...]:
        """The kinds of published splits that it has."""
        others = {"planetoid": ("geom-gcn", "public"), "masked-npz": ("stored",), "facebook": (), "twitch": ()}
        return others.get(self.family, ("geom-gcn",))

    @property
    def has_directions(self) -> bool:
        """Whether its files tell the direction of an edge."""
        return self.family in ("webkb", "actor") or self.stem.endswith("_directed")


BENCHMARKS = {
    "cora": Benchmark("planetoid", "cora", ("geom-gcn splits leave out 223 nodes outside the largest component",)),
    "citeseer": Benchmark("planetoid", "citeseer", _CITESEER_NOTES),
    "pubmed": Benchmark("planetoid", "pubmed"),
    "squirrel": Benchmark("npz", "squirrel_directed", (_WIKIPEDIA_NOTE,)),
    "chameleon": Benchmark("npz", "chameleon_directed", (_WIKIPEDIA_NOTE,)),
    "cornell-geomgcn": Benchmark("webkb", "cornell", (_CORNELL_NOTE, _MISSING_CLASS_NOTE)),
    "cornell": Benchmark("npz", "cornell", ("The real Cornell (h = .12); the paper's is `cornell-geomgcn`",)),
    "texas": Benchmark("webkb", "texas", (_MISSING_CLASS_NOTE,)),
    "wisconsin": Benchmark("webkb", "wisconsin"),
    "actor": Benchmark("actor", "film"),
    "chameleon-filtered": Benchmark("masked-npz", "chameleon_filtered_directed", (_FILTERED_NOTE,)),
    "squirrel-filtered": Benchmark("masked-npz", "squirrel_filtered_directed", (_FILTERED_NOTE,)),
    "minesweeper": Benchmark("masked-npz", "minesweeper", (_MINESWEEPER_NOTE,)),
    "facebook100-reed98": Benchmark("facebook", "Reed98", (_FACEBOOK_NOTE,)),
    "twitch-ptbr": Benchmark("twitch", "PTBR"),
}

NAMES = (*BENCHMARKS, "debian")
"""The real graphs that :func:`gcnsl.load` knows by name."""

SPLITS = ("random", "geom-gcn", "public", "stored")

_BY_NAME = "synthetic-h"
NAMED_SEED = 42
"""The seed of synthetic graphs that are loaded by name, so that a name always means the same graph."""


def synthetic_name(h: float) -> str:
    """Return the name by which :func:`gcnsl.load` loads the graph with homophily h and otherwise default arguments."""
    return f"{_BY_NAME}{h + 0:g}"  # + 0 turns -0.0 into 0.0


def synthetic_homophily(name: str) -> float | None:
    """Return the homophily in a name made by :func:`synthetic_name`; ``None`` for any other name."""
    try:
        h = float(name.removeprefix(_BY_NAME)) if name.startswith(_BY_NAME) else math.nan
    except ValueError:
        return None
    return h if 0 <= h <= 1 and name == synthetic_name(h) else None


def is_known(name: str) -> bool:
    """Return whether :func:`load` knows a graph by this name."""
    return name in NAMES or synthetic_homophily(name) is not None


def check_graph(name: Any, *, split: str | None, directed: bool) -> None:
    """Raise the error that :func:`gcnsl.load` would raise for these arguments."""
    if split is not None:
        check_choice("split", split, SPLITS, or_else=", or None")
    if not isinstance(name, str | os.PathLike):
        raise ArgumentError("name", name, f"must be one of {', '.join(NAMES)}, or the path of an npz file")
    check_flag("directed", directed)
    name = os.fspath(name)
    has: tuple[str, ...] = ("stored",)
    with_directions = [other for other, benchmark in BENCHMARKS.items() if benchmark.has_directions]
    if Path(name).suffix != ".npz":
        if not is_known(name):
            known = f"{', '.join(NAMES)}, synthetic-hH with H from 0 to 1, and paths of npz files"
            raise ArgumentError("name", name, f"is not a known graph; known are {known}{did_you_mean(name, NAMES)}")
        has = BENCHMARKS[name].splits if name in BENCHMARKS else ()
        if directed and name not in with_directions:
            rule = f"is not possible: the edges of {name} have no directions, unlike {', '.join(with_directions)}"
            raise ArgumentError("directed", True, rule)
    elif not Path(name).is_file():
        raise ArgumentError("name", name, "does not exist: give the path of an npz file")
    if split not in (None, "random", *has):
        others = ", ".join(repr(s) for s in ("random", *has))
        raise ArgumentError("split", split, f"does not exist for {name}: use one of {others}, or None")


def where(name: str, root: str | os.PathLike[str] | None = None) -> str | None:
    """Return the folder with the files of a graph, ``"bundled"``, or ``None`` if they must be downloaded."""
    if name == "debian":
        return "bundled"
    paths = BENCHMARKS[name].paths
    first, *others = (find(path, root) for path in paths)
    return None if first is None or None in others else str(first.parents[paths[0].count("/")])
