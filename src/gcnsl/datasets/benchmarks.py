"""Reads graphs of the literature from their original files.

torch_geometric parses the features and labels. The edges are read here, with repeats and loops, so that the same rule
(:mod:`gcnsl.graph.simple_edges`) applies to all graphs.
"""

import contextlib
import io
import os
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data
from torch_geometric.datasets import Actor, WebKB
from torch_geometric.io import read_planetoid_data

from gcnsl.datasets.array_pickles import load_arrays
from gcnsl.datasets.dataset_files import fetch
from gcnsl.datasets.social_networks import TWITCH_PARTS, read_facebook, read_twitch
from gcnsl.datasets.splits import Masks, geom_gcn_paths
from gcnsl.errors import InputError
from gcnsl.files import BAD_ZIP
from gcnsl.graph import from_arrays
from gcnsl.graph.masks import MASKS

_PLANETOID_PARTS = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
_NODES, _EDGES = "out1_node_feature_label.txt", "out1_graph_edges.txt"

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
            return [f"practice/twitch-{self.stem}/musae_{self.stem}_{part}" for part in TWITCH_PARTS]
        return [*(f"geom-gcn/{self.stem}/{name}" for name in (_NODES, _EDGES)), *geom_gcn_paths(self.split_stem)]

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


def read_benchmark(
    benchmark: Benchmark, root: str | os.PathLike[str] | None = None, *, directed: bool = False
) -> tuple[Data, Masks]:
    """Read a checked graph, and the masks that its files hold: a public or a stored split, or none."""
    files = {Path(path).name: content for path, content in fetch(benchmark.paths, root).items()}
    stem = benchmark.stem
    if benchmark.family in ("npz", "masked-npz"):
        arrays = read_npz(io.BytesIO(files[f"{stem}.npz"]), stem)
        data = from_arrays(arrays["node_features"], arrays["edges"].T, arrays["node_labels"], directed=directed)
        return data, {name: torch.from_numpy(arrays[f"{name}s"].T) for name in MASKS}  # stored as runs × n
    if benchmark.family == "facebook":
        return read_facebook(*files.values()), {}
    if benchmark.family == "twitch":
        return read_twitch(*files.values()), {}
    if benchmark.family == "planetoid":
        pickles = {name: load_arrays(files[name], name) for name in files if not name.endswith(".index")}
        with _on_disk(files) as folder:  # they are pickles of arrays, which may be unpickled anywhere
            raw = read_planetoid_data(folder, stem)
        lists: dict[int, list[int]] = pickles[f"ind.{stem}.graph"]
        edges = [(node, neighbour) for node, neighbours in lists.items() for neighbour in neighbours]
        return from_arrays(raw.x, np.array(edges).T, raw.y), {name: raw[name][:, None] for name in MASKS}
    nested = "raw" if benchmark.family == "actor" else f"{stem}/raw"
    with _on_disk({f"{nested}/{name}": content for name, content in files.items()}) as folder:
        raw = (Actor(folder) if benchmark.family == "actor" else WebKB(folder, stem))[0]
    arcs = np.loadtxt(io.BytesIO(files[_EDGES]), dtype=np.int64, skiprows=1)
    return from_arrays(raw.x, arcs.T, raw.y, directed=directed), {}


def read_npz(file: Any, name: str, *, masks: bool = False) -> dict[str, NDArray[Any]]:
    """Read the heterophilous format: ``node_features``, ``node_labels``, ``edges`` (m × 2), ``train_masks`` etc."""
    try:
        with np.load(file, allow_pickle=False) as archive:
            arrays = {key: archive[key] for key in archive.files}
    except (OSError, ValueError, EOFError, KeyError, TypeError, AttributeError, *BAD_ZIP) as error:
        why = "it holds Python objects" if "pickle" in str(error) else error
        raise InputError(f"{name} can't be read as an npz file ({why}): store plain arrays with np.savez") from error
    wanted = ["node_features", "node_labels", "edges"] + [f"{mask}s" for mask in MASKS if masks]
    missing = [key for key in wanted if key not in arrays]
    if missing:
        raise InputError(f"{name} has no array {missing[0]!r}, only {sorted(arrays)}: add {', '.join(missing)}")
    return arrays


@contextlib.contextmanager
def _on_disk(files: Mapping[str, bytes]) -> Iterator[str]:
    """Write verified contents to a temporary folder, for readers that take paths.

    The readers print to stderr and use deprecated names of NumPy and SciPy; both are hidden from the user.
    """
    with tempfile.TemporaryDirectory(prefix="gcnsl-") as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", category=DeprecationWarning)
        for path, content in files.items():
            target = Path(folder, path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        with contextlib.redirect_stderr(io.StringIO()):
            yield folder
