"""Graphs that nobody here has seen before, from their raw files, for chains.

Tables become CSV files as a user would write them; pickled matrices are read by an unpickler that knows nothing but
arrays, and stay in memory.
"""

from __future__ import annotations

import io
import pickle
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from rich.console import Console
from tests.chains.chain import Chain
from tests.chains.graphs import NEW, ChainGraph


def strangers(folder: Path, console: Console) -> Iterator[Chain]:
    """Each graph that is there, with a method and with ``auto``; says which are missing."""
    if not folder.is_dir():
        console.print(f"skipped: {folder} is not a folder")
        return
    for seed, (name, (read, methods)) in enumerate(_GRAPHS.items()):
        if not (folder / name).is_dir():
            console.print(f"skipped: {folder / name} is not there")
            continue
        graph = read(folder / name)
        for number, method in enumerate(methods):
            given = ("--minutes", "0.4") if method == "auto" else ("--set", "epochs=20")
            yield Chain(1000 * (seed + 1) + number, graph, method, given, frozenset({"plot"}))


def _graph(container: str, nodes: pd.DataFrame, edges: pd.DataFrame, label: str, **options: Any) -> ChainGraph:
    """A graph with its truth, from tables whose columns are ``id`` and ``source``, ``target``."""
    unknown = options.get("unknown")
    labels = [None if pd.isna(value) or value == "" else value for value in nodes[label]]
    if unknown is None:
        labels = [None if value in (-1, "NA") else value for value in labels]
    ids = nodes["id"].tolist()
    place = {node: number for number, node in enumerate(ids)}
    ends = list(zip(edges["source"].map(place), edges["target"].map(place), strict=True))
    spare = [f"new {i}" if isinstance(ids[0], str) else max(ids) + i for i in range(1, NEW + 1)]
    kinds = dict.fromkeys(("ids", "shape", "amount", "split", "names", "edges", "columns", "labels"), "real")
    kinds |= {"size": "huge", "container": container}  # which is given more time
    return ChainGraph(0, kinds, nodes, edges, {"label": label} | options, 0, ids, labels, ends, [], spare)


def _air_routes(folder: Path) -> ChainGraph:
    """Airports and flights; the class is the continent, of which the largest is NA."""
    nodes = pd.read_csv(folder / "air-routes-latest-nodes.csv", keep_default_na=False)
    links = pd.read_csv(folder / "air-routes-latest-edges.csv", keep_default_na=False)
    continents = nodes[nodes["~label"] == "continent"].set_index("~id")["code:string"]
    contains = links[(links["~label"] == "contains") & links["~from"].isin(continents.index)]
    nodes["continent"] = nodes["~id"].map(contains.set_index("~to")["~from"].map(continents))
    nodes = nodes[nodes["~label"] == "airport"].rename(columns={"~id": "id"}).reset_index(drop=True)
    nodes = nodes.replace("", None)
    links = links[links["~label"] == "route"].rename(columns={"~from": "source", "~to": "target"})
    edges = links[["source", "target", "dist:int", "~id"]].reset_index(drop=True)
    return _graph(
        "csv", nodes, edges, "continent", unknown=[], directed=True, weight="dist:int", drop=["country:string"]
    )


def _larva(folder: Path) -> ChainGraph:
    """Neurons and synapses; the class is the kind of neuron, and many columns are the class under another name."""
    nodes = pd.read_csv(folder / "meta_data.csv.gz", low_memory=False).rename(columns={"Unnamed: 0": "id"})
    edges = pd.read_csv(folder / "G_edgelist.txt.gz", sep=" ", names=["source", "target", "weight"])
    nodes = nodes.drop_duplicates("id").reset_index(drop=True)
    edges = edges[edges["source"].isin(nodes["id"]) & edges["target"].isin(nodes["id"])].reset_index(drop=True)
    return _graph("csv.gz", nodes, edges, "simple_group", directed=True)


def _german(folder: Path) -> ChainGraph:
    """Customers who are good (1) or not (-1), joined by likeness."""
    nodes = pd.read_csv(folder / "german.csv").rename_axis("id").reset_index()
    edges = pd.read_csv(folder / "german_edges.txt.gz", sep=" ", names=["source", "target"]).astype(int)
    return _graph("csv", nodes, edges, "GoodCustomer", unknown=[])


def _sparse(file: str, container: str) -> Callable[[Path], ChainGraph]:
    """Read an npz file with pickled matrices."""

    def read(folder: Path) -> ChainGraph:
        adjacency, x, y = (_member(folder / file, name) for name in ("adj_matrix", "node_attr", "node_label"))
        return _in_memory(container, sp.coo_array(adjacency), sp.csr_array(x), y)

    return read


def _books(folder: Path) -> ChainGraph:
    """Books that are bought together; the class is whether they are odd."""
    import torch
    from torch_geometric.data import Data
    from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
    from torch_geometric.data.storage import GlobalStorage

    with zipfile.ZipFile(folder / "books.pt.zip") as archive:
        content = io.BytesIO(archive.read("books.pt"))
    with torch.serialization.safe_globals([Data, DataEdgeAttr, DataTensorAttr, GlobalStorage]):
        data = torch.load(content, weights_only=True)
    ends = sp.coo_array((np.ones(data.edge_index.shape[1]), data.edge_index.numpy()), shape=[len(data.y)] * 2)
    return _in_memory("pyg", ends, sp.csr_array(data.x.numpy()), data.y.numpy().astype(int) & 1)


def _in_memory(container: str, adjacency: Any, x: Any, y: np.ndarray) -> ChainGraph:
    nodes = pd.DataFrame({"id": range(len(y)), "label": y})
    edges = pd.DataFrame({"source": adjacency.row, "target": adjacency.col})
    graph = _graph(container, nodes, edges, "label")
    object.__setattr__(graph, "x", x)
    object.__setattr__(graph, "options", {})
    return graph


_KNOWN = {"_reconstruct": np.empty(0).__reduce__()[0], "ndarray": np.ndarray, "dtype": np.dtype}
_KNOWN |= {"csr_matrix": sp.csr_matrix, "csc_matrix": sp.csc_matrix, "scalar": np.int64(0).__reduce__()[0]}


class _OnlyArrays(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if module.partition(".")[0] not in ("numpy", "scipy") or name not in _KNOWN:
            raise pickle.UnpicklingError(f"the file names {module}.{name}")
        return _KNOWN[name]


def _member(path: Path, name: str) -> Any:
    """An array of an npz file, or the matrix that is pickled in its place."""
    with zipfile.ZipFile(path) as archive, archive.open(f"{name}.npy") as file:
        content = io.BytesIO(file.read())
    version = np.lib.format.read_magic(content)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    if not read(content)[2].hasobject:
        content.seek(0)
        return np.load(content, allow_pickle=False)
    found = _OnlyArrays(content, encoding="latin1").load()
    return found.item() if isinstance(found, np.ndarray) else found


_GRAPHS: dict[str, tuple[Callable[[Path], ChainGraph], tuple[str, ...]]] = {
    "air-routes": (_air_routes, ("gcn", "auto")),
    "larva-connectome": (_larva, ("linkx", "auto")),
    "german": (_german, ("logistic", "auto")),
    "blogcatalog": (_sparse("blogcatalog.npz", "scipy"), ("gcn", "auto")),
    "amazon-photo": (_sparse("amazon_photo.npz", "scipy"), ("sage", "auto")),
    "pygod-books": (_books, ("mlp", "auto")),
}
