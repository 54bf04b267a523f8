"""The graphs that are known by name, and the files of those of the literature. Nothing here loads torch.

A file is looked for in ``root``, ``$GCNSL_DATA`` and the user's cache, in this order, and downloaded into the cache if
it is in none of them; it may be gzipped. Its SHA-256 is compared with ``SHA256SUMS`` in this folder before it is used,
so that an altered pickle is never loaded. Every download is logged to the logger ``gcnsl`` with level INFO.
"""

import functools
import gzip
import hashlib
import logging
import math
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from gcnsl.checks import check_choice, check_flag, did_you_mean
from gcnsl.errors import ArgumentError, DownloadError, InputError

LOGGER = logging.getLogger("gcnsl")

DATA_VARIABLE, MIRROR_VARIABLE = "GCNSL_DATA", "GCNSL_MIRROR"
"""Environment variables: a folder of dataset files, arranged as in ``SHA256SUMS``, and the address of such a folder."""

_GITHUB = "https://raw.githubusercontent.com"
_GEOM_GCN = f"{_GITHUB}/graphdml-uiuc-jlu/geom-gcn/f1fc0d14b3b019c562737240d06ec83b07d16a8f"
_HETEROPHILOUS = f"{_GITHUB}/yandex-research/heterophilous-graphs/a431395582e929d88271309716bea4fe24ce6318/data/"
_LINKX = f"{_GITHUB}/CUAI/Non-Homophily-Large-Scale/82f8f05c5c3ec16bd5b505cc7ad62ab5e09051e6/data"
UPSTREAM = {
    "planetoid/": f"{_GITHUB}/kimiyoung/planetoid/af6abf468a772cc055bec88c52e4d6f51b7c37e3/data/",
    "geom-gcn/structural_neighborhood/": f"{_GEOM_GCN}/structural_neighborhood/",
    "geom-gcn/": f"{_GEOM_GCN}/new_data/",
    "splits/": f"{_GEOM_GCN}/splits/",
    "heterophilous/": _HETEROPHILOUS,
    "practice/facebook100-": f"{_LINKX}/facebook100/",
    "practice/twitch-": f"{_LINKX}/twitch/",
    "practice/": _HETEROPHILOUS,
}
"""The address, at a fixed commit, that takes the place of the beginning of a path; the first match counts."""
_CREDENTIALS = re.compile(r"//[^/@\s]*@")

GEOM_GCN_RUNS = 10

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
    """The paths of Geom-GCN's ten splits. They are 48/32/20 % splits, in spite of the numbers in their names."""
    return [f"splits/{stem}_split_0.6_0.2_{run}.npz" for run in range(GEOM_GCN_RUNS)]


@dataclass(frozen=True)
class Benchmark:
    """A graph of the literature: the format of its files (see :data:`FAMILIES`), its name in their paths, and notes."""

    family: str
    stem: str
    notes: tuple[str, ...] = ()

    @property
    def paths(self) -> list[str]:
        """The paths of its files."""
        return [path.format(self.stem) for path in FAMILIES[self.family][0]]

    @property
    def split_stem(self) -> str:
        """Its name in the paths of its Geom-GCN splits and neighbourhoods."""
        return self.stem.removesuffix("_directed")

    @property
    def splits(self) -> tuple[str, ...]:
        """Its kinds of published splits."""
        return FAMILIES[self.family][1]

    @property
    def has_directions(self) -> bool:
        """Whether its files tell the direction of an edge."""
        return self.family in ("webkb", "actor") or self.stem.endswith("_directed")


_TEXTS = ("geom-gcn/{}/out1_node_feature_label.txt", "geom-gcn/{}/out1_graph_edges.txt")
_PLANETOID_PARTS = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
_TWITCH_PARTS = ("edges.csv", "features.json", "target.csv")
FAMILIES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "planetoid": (tuple(f"planetoid/ind.{{}}.{part}" for part in _PLANETOID_PARTS), ("geom-gcn", "public")),
    "webkb": (_TEXTS, ("geom-gcn",)),
    "actor": (_TEXTS, ("geom-gcn",)),
    "npz": (("heterophilous/{}.npz",), ("geom-gcn",)),
    "masked-npz": (("practice/{}.npz",), ("stored",)),
    "facebook": (("practice/facebook100-{}.mat",), ()),
    "twitch": (tuple(f"practice/twitch-{{0}}/musae_{{0}}_{part}" for part in _TWITCH_PARTS), ()),
}
"""The formats of files: their paths with a gap for the stem, and the published splits that such graphs have."""

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
GRAPH_FILES = (".npz", ".pt", ".pt.zip")
"""The endings of graphs in one file, see :mod:`gcnsl.datasets.loading`."""

_BY_NAME = "synthetic-h"
NAMED_SEED = 42
"""The seed of synthetic graphs that are loaded by name, so that a name always means the same graph."""


def synthetic_name(h: float) -> str:
    """The name by which :func:`gcnsl.load` loads the graph with homophily h and otherwise default arguments."""
    return f"{_BY_NAME}{h + 0:g}"  # + 0 turns -0.0 into 0.0


def synthetic_homophily(name: str) -> float | None:
    """The homophily in a name made by :func:`synthetic_name`; ``None`` for any other name."""
    try:
        h = float(name.removeprefix(_BY_NAME)) if name.startswith(_BY_NAME) else math.nan
    except ValueError:
        return None
    return h if 0 <= h <= 1 and name == synthetic_name(h) else None


def is_known(name: str) -> bool:
    """Whether :func:`load` knows a graph by this name."""
    return name in NAMES or synthetic_homophily(name) is not None


def is_graph_file(name: str) -> bool:
    """Whether this is the path of a graph in one file, by its ending."""
    return name.lower().endswith(GRAPH_FILES)


def check_graph(name: Any, *, split: str | None, directed: bool) -> None:
    """Raise the error that :func:`gcnsl.load` would raise for these arguments."""
    if split is not None:
        check_choice("split", split, SPLITS, or_else=", or None")
    if not isinstance(name, str | os.PathLike):
        raise ArgumentError("name", name, f"must be one of {', '.join(NAMES)}, or the path of a graph file")
    check_flag("directed", directed)
    name = os.fspath(name)
    has: tuple[str, ...] = ("stored",)
    with_directions = [other for other, benchmark in BENCHMARKS.items() if benchmark.has_directions]
    if not is_graph_file(name):
        if not is_known(name):
            known = f"{', '.join(NAMES)}, synthetic-hH with H from 0 to 1, and paths of files {', '.join(GRAPH_FILES)}"
            raise ArgumentError("name", name, f"is not a known graph; known are {known}{did_you_mean(name, NAMES)}")
        has = BENCHMARKS[name].splits if name in BENCHMARKS else ()
        if directed and name not in with_directions:
            rule = f"is not possible: the edges of {name} have no directions, unlike {', '.join(with_directions)}"
            raise ArgumentError("directed", True, rule)
    elif not Path(name).is_file():
        raise ArgumentError("name", name, "does not exist: give the path of a graph file")
    if split not in (None, "random", *has):
        others = ", ".join(repr(s) for s in ("random", *has))
        raise ArgumentError("split", split, f"does not exist for {name}: use one of {others}, or None")


def where(name: str, root: str | os.PathLike[str] | None = None) -> str | None:
    """The folder with the files of a graph, ``"bundled"``, or ``None`` if they must be downloaded."""
    if name == "debian":
        return "bundled"
    found = {path: find(path, root) for path in BENCHMARKS[name].paths}
    path, file = next(iter(found.items()))
    return None if file is None or None in found.values() else str(file.parents[path.count("/")])


@functools.cache
def checksums() -> dict[str, str]:
    """The SHA-256 of every dataset file by its path."""
    lines = resources.files("gcnsl.datasets").joinpath("SHA256SUMS").read_text().splitlines()
    return {path: digest for digest, path in (line.split() for line in lines)}


def cache_folder() -> Path:
    """The folder for downloads, in the user's cache folder of the operating system."""
    import pooch

    return Path(pooch.os_cache("gcnsl"))


def check_root(root: str | os.PathLike[str] | None) -> None:
    """Raise an error if a folder for dataset files is none."""
    if root is not None and not Path(root).is_dir():
        raise ArgumentError("root", str(root), "is not a folder: give one with dataset files, or leave it out")


def _folders(root: str | os.PathLike[str] | None) -> Iterator[Path]:
    check_root(root)
    yield from (Path(folder) for folder in (root, os.environ.get(DATA_VARIABLE)) if folder)
    yield cache_folder()


def find(path: str, root: str | os.PathLike[str] | None = None) -> Path | None:
    """Where a dataset file is, plain or gzipped, or ``None`` if it must be downloaded."""
    names = [name for name in (path, f"{path}.gz") if name in checksums()]
    files = (folder / name for folder in _folders(root) for name in names)
    return next((file for file in files if file.is_file()), None)


def fetch(paths: Iterable[str], root: str | os.PathLike[str] | None = None) -> dict[str, bytes]:
    """The verified contents of dataset files by their paths in ``SHA256SUMS``, without ``.gz``."""
    files = {path: find(path, root) for path in paths}
    missing = [path for path, file in files.items() if file is None]
    contents = {}
    for path, found in files.items():
        file = found or _download(path, missing)
        content = file.read_bytes()
        expected = checksums()[f"{path}.gz" if file.suffix == ".gz" else path]
        if (actual := hashlib.sha256(content).hexdigest()) != expected:
            raise InputError(
                f"{file} has been altered: its SHA-256 is {actual[:12]}…, not {expected[:12]}…. It was not loaded. "
                "Delete it, so that it is downloaded again, or restore the original"
            )
        contents[path] = gzip.decompress(content) if file.suffix == ".gz" else content
    return contents


def _download(path: str, missing: list[str]) -> Path:
    """Download one of the missing files into the cache. Pooch keeps it only if its checksum is right."""
    import pooch
    import requests

    LOGGER.info("Downloading %s (%d of %d)", path, missing.index(path) + 1, len(missing))
    target, checksum = cache_folder() / path, f"sha256:{checksums()[path]}"
    downloader = pooch.HTTPDownloader(timeout=30)
    pooch.get_logger().setLevel("WARNING")  # it would announce the download a second time
    try:
        return Path(pooch.retrieve(_address(path), checksum, target.name, target.parent, downloader=downloader))
    except (OSError, ValueError, requests.RequestException) as error:
        address, reason = (_CREDENTIALS.sub("//", str(text)) for text in (_address(path), error))
        raise DownloadError(
            f"can't download {address} ({reason}). Set {DATA_VARIABLE} to a folder with "
            f"{', '.join(missing)}, or {MIRROR_VARIABLE} to the address of a mirror of such a folder"
        ) from None  # the cause would show the credentials


def _address(path: str) -> str:
    if mirror := os.environ.get(MIRROR_VARIABLE):
        return f"{mirror.rstrip('/')}/{path}"
    beginning, address = next((start, address) for start, address in UPSTREAM.items() if path.startswith(start))
    return address + path.removeprefix(beginning)
