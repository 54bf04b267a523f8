"""The ten graphs of the literature, from their original files.

torch_geometric's own readers parse features and labels; what they leave out is done here: the edges are
read as they stand, with repeats and loops, so that one rule (:mod:`gcnsl.graph.edges`) serves every graph.
"""

import contextlib
import io
import os
import pickle
import tempfile
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch_geometric.data import Data
from torch_geometric.datasets import Actor, WebKB
from torch_geometric.io import read_planetoid_data

from gcnsl.datasets.files import fetch
from gcnsl.datasets.splits import PARTS, Masks, geom_gcn_paths
from gcnsl.errors import InputError
from gcnsl.graph import from_arrays

Root = str | os.PathLike[str] | None

_PLANETOID_PARTS = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
_NODES, _EDGES = "out1_node_feature_label.txt", "out1_graph_edges.txt"

_WIKIPEDIA_NOTE = (
    "Contains groups of nodes with the same neighbours and label, split between training and test: "
    "accuracies are optimistic (Platonov et al., 2023)"
)
_MISSING_CLASS_NOTE = (
    "One class has a single node (25): in geom-gcn splits where it is not trained on, it can't be learnt"
)


@dataclass(frozen=True)
class Benchmark:
    """One graph of the literature: its files and what to know about it."""

    name: str
    family: str
    """Which reader: ``planetoid``, ``webkb``, ``actor`` or ``npz``."""
    stem: str
    """The name that its files go by upstream."""
    notes: tuple[str, ...] = ()

    @property
    def paths(self) -> list[str]:
        """The files that hold the graph; torch_geometric's readers of some want the splits beside it."""
        match self.family:
            case "planetoid":
                return [f"planetoid/ind.{self.stem}.{part}" for part in _PLANETOID_PARTS]
            case "npz":
                return [f"heterophilous/{self.stem}.npz"]
            case _:
                folder = f"geom-gcn/{self.stem}"
                return [f"{folder}/{_NODES}", f"{folder}/{_EDGES}", *geom_gcn_paths(self.split_stem)]

    @property
    def split_stem(self) -> str:
        """The name that its Geom-GCN splits go by."""
        return self.stem.removesuffix("_directed")


BENCHMARKS = {
    benchmark.name: benchmark
    for benchmark in (
        Benchmark("cora", "planetoid", "cora", ("geom-gcn splits leave out 223 nodes outside the largest component",)),
        Benchmark(
            "citeseer",
            "planetoid",
            "citeseer",
            (
                "15 nodes have neither features nor a label upstream; as everywhere in the literature they count as "
                "class 0, and the splits contain them",
                "geom-gcn splits 4 and 5 leave out 1207 nodes outside the largest component",
            ),
        ),
        Benchmark("pubmed", "planetoid", "pubmed"),
        Benchmark("squirrel", "npz", "squirrel_directed", (_WIKIPEDIA_NOTE,)),
        Benchmark("chameleon", "npz", "chameleon_directed", (_WIKIPEDIA_NOTE,)),
        Benchmark(
            "cornell-geomgcn",
            "webkb",
            "cornell",
            (
                "Cornell's edges with Texas's features and labels, an upstream mistake: this is the graph of the "
                "paper's table (h = .30); `cornell` is the real one",
                _MISSING_CLASS_NOTE,
            ),
        ),
        Benchmark("cornell", "npz", "cornell", ("The real Cornell (h = .12), not the paper's: see `cornell-geomgcn`",)),
        Benchmark("texas", "webkb", "texas", (_MISSING_CLASS_NOTE,)),
        Benchmark("wisconsin", "webkb", "wisconsin"),
        Benchmark("actor", "actor", "film"),
    )
}


def read_benchmark(benchmark: Benchmark, root: Root = None) -> tuple[Data, Masks]:
    """The checked graph, and the masks that its files themselves define (the public ones of the citation graphs)."""
    files = {Path(path).name: content for path, content in fetch(benchmark.paths, root).items()}
    if benchmark.family == "npz":
        arrays = read_npz(io.BytesIO(files[f"{benchmark.stem}.npz"]), benchmark.name)
        return from_arrays(arrays["node_features"], arrays["edges"].T, arrays["node_labels"]), {}
    if benchmark.family == "planetoid":
        raw = _parse_planetoid(files, benchmark.stem)
        edges = _adjacency_lists(files[f"ind.{benchmark.stem}.graph"])
        return from_arrays(raw.x, edges, raw.y), {part: raw[part][:, None] for part in PARTS}
    raw = _parse_geom_gcn(files, benchmark)
    edges = np.loadtxt(io.BytesIO(files[_EDGES]), dtype=np.int64, skiprows=1).T
    return from_arrays(raw.x, edges, raw.y), {}


def read_npz(file: Any, name: str, *, masks: bool = False) -> dict[str, NDArray[Any]]:
    """The arrays of the heterophilous format: node_features, node_labels, edges (m × 2), {train,val,test}_masks."""
    try:
        with np.load(file, allow_pickle=False) as archive:
            arrays = {key: archive[key] for key in archive.files}
    except (OSError, ValueError, EOFError, KeyError, TypeError, AttributeError, zipfile.BadZipFile) as error:
        raise InputError(f"{name} can't be read as an npz file of plain arrays ({error})") from error
    wanted = ["node_features", "node_labels", "edges"] + [f"{part}s" for part in PARTS if masks]
    missing = [key for key in wanted if key not in arrays]
    if missing:
        raise InputError(f"{name} has no array {missing[0]!r}, it has {sorted(arrays)}: add {', '.join(missing)}")
    return arrays


def _parse_planetoid(files: Mapping[str, bytes], stem: str) -> Data:
    with _on_disk(files) as folder:
        return read_planetoid_data(str(folder), stem)


def _parse_geom_gcn(files: Mapping[str, bytes], benchmark: Benchmark) -> Data:
    nested = Path("raw") if benchmark.family == "actor" else Path(benchmark.stem, "raw")
    with _on_disk({str(nested / name): content for name, content in files.items()}) as folder:
        dataset = Actor(str(folder)) if benchmark.family == "actor" else WebKB(str(folder), benchmark.stem)
        return dataset[0]


@contextlib.contextmanager
def _on_disk(files: Mapping[str, bytes]) -> Iterator[Path]:
    """The checked bytes in a folder of their own, for readers that open paths: what they open is what was checked.

    The readers talk on stderr and use names that NumPy and SciPy have deprecated; neither is news to the user.
    """
    with tempfile.TemporaryDirectory(prefix="gcnsl-") as name, warnings.catch_warnings():
        warnings.simplefilter("ignore", category=DeprecationWarning)
        for path, content in files.items():
            target = Path(name, path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        with contextlib.redirect_stderr(io.StringIO()):
            yield Path(name)


def _adjacency_lists(pickled: bytes) -> NDArray[np.int64]:
    """Planetoid's ``graph``, a dict from node to neighbours, as 2 × E entries in order, repeats and loops included."""
    lists: dict[int, list[int]] = pickle.loads(pickled, encoding="latin1")
    source = np.repeat(list(lists), [len(neighbours) for neighbours in lists.values()])
    return np.stack([source, np.concatenate([np.asarray(v, dtype=np.int64) for v in lists.values()])])
