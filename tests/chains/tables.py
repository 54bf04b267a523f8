"""Chain graphs as files, as options of the command line, and as data in memory."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pyarrow as pa
import scipy.sparse as sp
import torch
from torch_geometric.data import Data

from .graphs import FILES, ChainGraph


def write(graph: ChainGraph, folder: Path, stem: str = "") -> list[str]:
    """Write both tables, and return the options that name them."""
    kind = graph.kinds["container"]
    ending = {"tsv": "tsv", "parquet": "parquet", "pq": "pq", "csv.gz": "csv.gz"}.get(kind, "csv")
    options = []
    for name, table in {"nodes": graph.nodes, "edges": graph.edges}.items():
        path = folder / f"{stem}{name}.{ending}"
        if kind in FILES:
            path.write_bytes(_as_text(table, kind, header=name == "nodes" or "headerless" not in graph.kinds["edges"]))
        else:
            table.to_parquet(path, index=False)
        options += [f"--{name}", path.name]
    return options


def _as_text(table: pd.DataFrame, kind: str, *, header: bool) -> bytes:
    text = table.to_csv(
        None,
        index=False,
        header=header,
        sep="\t" if kind == "tsv" else ",",
        lineterminator="\r\n" if kind == "csv crlf" else "\n",
        quoting=csv.QUOTE_ALL if kind == "csv quoted" else csv.QUOTE_MINIMAL,
    )
    if kind == "csv no end":
        text = text.removesuffix("\n")
    if kind == "csv blank lines":
        text += "\n\n"
    content = text.encode("utf-8-sig" if kind == "csv bom" else "utf-8")
    return gzip.compress(content, mtime=0) if kind == "csv.gz" else content


def options(graph: ChainGraph, *, for_model: bool = False) -> list[str]:
    """The further options of the graph; ``for_model`` leaves out what a model knows by itself."""
    found, known = [], graph.options
    for name in ("id", "label") if for_model else ("id", "label", "fold", "weight"):
        if known.get(name):
            found += [{"fold": "--fold-column"}.get(name, f"--{name}"), known[name]]
    if for_model:
        return found
    for name in ("categorical", "drop"):
        found += [f"--{name}", _listed(known[name])] if name in known else []
    found += ["--split-columns", _listed(known["split"])] if "split" in known else []
    found += ["--unknown", ""] if "unknown" in known else []
    found += ["--no-weight"] * (known.get("weight") is False) + ["--directed"] * graph.directed
    return found + (["--folds", str(graph.folds)] if graph.folds else [])


def _listed(names: Iterable[str]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="", quoting=csv.QUOTE_ALL).writerow(names)
    return line.getvalue()


def read(path: Path) -> pd.DataFrame:
    """A table as pandas reads it, with none of its options."""
    if path.suffix in (".parquet", ".pq"):
        return pd.read_parquet(path)
    return pd.read_csv(path, sep="\t" if ".tsv" in path.name else ",")


def read_text(path: Path) -> pd.DataFrame:
    """A text file with all cells as they are written."""
    return pd.read_csv(path, sep="\t" if ".tsv" in path.name else ",", dtype=str, keep_default_na=False)


def features(graph: ChainGraph) -> Any:
    """The features as a matrix (n × d), ``None`` if there are none."""
    if graph.x is not None:
        return graph.x
    names = [name for name in graph.nodes if name in graph.features or name.startswith("bit")]
    return graph.nodes[names].to_numpy() if names else None


def label_array(graph: ChainGraph) -> np.ndarray:
    """The labels (n): -1 where integers are unknown, else ``None``."""
    values = graph.labels
    if all(value is None or (isinstance(value, int) and not isinstance(value, bool)) for value in values):
        return np.array([-1 if value is None else value for value in values])
    return np.array(values, dtype=object)


def in_memory(graph: ChainGraph) -> Data:
    """The checked graph, made from data in memory by the function of the package that fits it."""
    import gcnsl

    kind, x, y = graph.kinds["container"], features(graph), label_array(graph)
    weights = graph.edges.get("weight")
    if kind in ("pandas", "arrow"):
        tables = [graph.nodes, graph.edges]
        if kind == "arrow":
            tables = [pa.Table.from_pandas(table, preserve_index=False) for table in tables]
        return gcnsl.from_tables(*tables, **graph.options)
    if kind == "networkx":
        return gcnsl.from_networkx(_networkx(graph, x), features="x" if x is not None else [])
    masks = _masks(graph)
    if kind == "scipy":
        ends = np.array(graph.ends, dtype=int).reshape(-1, 2).T
        values = np.ones(len(graph.ends)) if weights is None else weights.to_numpy()
        adjacency = sp.coo_array((values, (ends[0], ends[1])), shape=(len(y), len(y))).tocsr()
        weighted = weights is not None
        return gcnsl.from_scipy(adjacency, x, y, weighted=weighted, directed=graph.directed, **masks)
    return gcnsl.from_data(plain_data(graph), directed=graph.directed)


def plain_data(graph: ChainGraph) -> Data:
    """The graph as a user of PyTorch Geometric has it."""
    x, weights = features(graph), graph.edges.get("weight")
    data = Data(
        x=None if x is None else torch.from_numpy(x.astype(np.float32) if graph.x is None else x.toarray()),
        edge_index=torch.tensor(graph.ends, dtype=torch.long).reshape(-1, 2).T,
        y=torch.from_numpy(label_array(graph)),
        num_nodes=len(graph.ids),
    )
    if weights is not None:
        data.edge_weight = torch.from_numpy(weights.to_numpy())
    for name, mask in _masks(graph).items():
        data[name] = torch.tensor(mask)
    return data


def _masks(graph: ChainGraph) -> dict[str, Any]:
    split = graph.nodes.get("split")
    return {} if split is None else {f"{p}_mask": (split == p).to_numpy(bool) for p in ("train", "val", "test")}


def _networkx(graph: ChainGraph, x: np.ndarray | None) -> nx.Graph:
    made: nx.Graph = nx.MultiDiGraph() if graph.directed else nx.MultiGraph()
    for number, (node, label) in enumerate(zip(graph.ids, graph.labels, strict=True)):
        made.add_node(
            node, **({} if x is None else {"x": x[number].tolist()}), **({} if label is None else {"label": label})
        )
    for row, (a, b) in enumerate(graph.ends):
        more = {"weight": float(graph.edges["weight"].iloc[row])} if "weight" in graph.edges else {}
        made.add_edge(graph.ids[a], graph.ids[b], **more)
    return made
