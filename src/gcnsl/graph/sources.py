"""A checked graph from data in memory: arrays, SciPy matrices, networkx graphs or PyG Data."""

import contextlib
import warnings
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import to_edge_index

from gcnsl import sparse
from gcnsl.checks import UNLABELLED, as_array, check_flag
from gcnsl.errors import InputError
from gcnsl.graph.checked_graph import OF_THE_WHOLE, Graph
from gcnsl.graph.edges import ALONG, arcs_and_weights, check_edges, simple_undirected
from gcnsl.graph.labels import check_labels
from gcnsl.graph.masks import MASKS, GraphWarning, check_masks


def from_arrays(
    x: Any,
    edge_index: Any,
    y: Any = None,
    *,
    directed: bool = False,
    edge_weight: Any = None,
    class_names: Sequence[Any] | None = None,
    node_ids: Any = None,
    feature_names: Sequence[str] | None = None,
    train_mask: Any = None,
    val_mask: Any = None,
    test_mask: Any = None,
) -> Graph:
    """Make a checked graph from arrays. All other ways to make a graph call this function.

    Args:
        x: Features (n × d), dense or sparse. Sparse features stay sparse (torch CSR). ``None`` if the nodes have none:
            methods then read structural features, and ``y`` says how many nodes there are.
        edge_index: Node numbers of the edges (2 × E), which are made simple and undirected: see
            :mod:`gcnsl.graph.edges`.
        y: One label per node, of any type; -1, ``None`` or NaN where the class is not known: see
            :mod:`gcnsl.graph.labels`.
        directed: Whether the direction of an edge, from its first to its second node, has a meaning and is kept too.
        edge_weight: A positive weight for each edge (E); see :mod:`gcnsl.graph.edges` for edges that are repeated.
        class_names: The classes, if ``y`` holds their numbers 0, 1, 2, ...
        node_ids: The caller's names for the nodes, all different. Integers stay integers, all else becomes text.
        feature_names: Names of the columns of ``x``.
        train_mask: Training nodes (n or n × runs, boolean); likewise ``val_mask`` and ``test_mask``.

    Returns:
        The graph, with those of its attributes that were given.
    """
    if x is None and y is None:
        raise InputError("x and y are both None: give features, or labels, so that the number of nodes is known")
    features = check_features(np.empty((len(y), 0)) if x is None else x)
    num_nodes, num_features = features.shape
    ends = check_edges(edge_index, num_nodes)
    simple, report = simple_undirected(*ends, num_nodes)
    data = Graph(x=features, edge_index=torch.from_numpy(simple))
    data.edge_report = report
    data.update(arcs_and_weights(*ends, num_nodes, directed=check_flag("directed", directed), weight=edge_weight))
    if class_names is not None:
        data.class_names = list(class_names)
    if y is not None:
        data.y, data.class_names = check_labels(y, num_nodes, class_names)
    if node_ids is not None:
        data.node_ids = pd.Index(check_ids(node_ids, num_nodes))
    if feature_names is not None:
        if len(feature_names) != num_features:
            raise InputError(
                f"feature_names has {len(feature_names)} entries: give {num_features}, one per column of x"
            )
        data.feature_names = [str(name) for name in feature_names]
    masks = dict(zip(MASKS, (train_mask, val_mask, test_mask), strict=True))
    data.update(check_masks(masks, data.y, num_nodes, data.get("class_names") or ()))
    return data


def from_scipy(adjacency: Any, x: Any, y: Any = None, *, weighted: bool = False, **options: Any) -> Graph:
    """Make a checked graph from a square SciPy matrix (n × n), of which every non-zero entry (u, v) is an edge.

    With ``weighted``, the entries are the weights of the edges. ``x``, ``y`` and ``options`` are arguments of
    :func:`from_arrays`; with ``directed=True``, the edge leads from u to v.
    """
    rows, columns = adjacency.shape
    if rows != columns:
        raise InputError(
            f"adjacency has shape {adjacency.shape}: give a square matrix with one row and one column per node"
        )
    x = check_features(np.empty((rows, 0)) if x is None else x)
    if len(x) != rows:
        raise InputError(f"x has {len(x)} rows, but adjacency has {rows}: give one row per node")
    entries = sp.coo_array(adjacency)
    entries.sum_duplicates()
    entries.eliminate_zeros()
    weight = entries.data if check_flag("weighted", weighted) else None
    return from_arrays(x, np.stack([entries.row, entries.col]), y, edge_weight=weight, **options)


def from_networkx(
    graph: Any,
    *,
    features: str | Sequence[str] = "x",
    label: str | None = "label",
    weight: str | Literal[False] = "weight",
    **options: Any,
) -> Graph:
    """Make a checked graph from any networkx graph. The nodes become ``node_ids``.

    Args:
        features: The node attribute with a vector, or a list of node attributes with one number each.
        label: The node attribute with the class, which unlabelled nodes lack; ``None`` for a graph without labels.
        weight: The edge attribute with the weight. As in networkx, edges that lack it have weight 1; if all lack it,
            the graph has no weights. ``False`` ignores the weights.
        **options: Further arguments of :func:`from_arrays`. A ``DiGraph`` is directed unless ``directed=False``.
    """
    number = {node: i for i, node in enumerate(graph)}
    wanted = [features] if isinstance(features, str) else features
    attributes = list(graph.nodes.values())
    for node, own in graph.nodes.items():
        for name in wanted:
            if name not in own:
                raise InputError(
                    f"node {node!r} has no attribute {name!r}: set it, or give other attributes as features"
                )
    rows = [own[features] if isinstance(features, str) else [own[name] for name in wanted] for own in attributes]
    has_labels = any(label in own for own in attributes)
    labels = np.array([own.get(label) for own in attributes], dtype=object) if has_labels else None
    ends = np.array([(number[u], number[v]) for u, v in graph.edges()], dtype=np.int64).reshape(-1, 2)
    weights = [w for _, _, w in graph.edges(data=weight)] if weight else []
    if any(w is not None for w in weights):
        options["edge_weight"] = [1.0 if w is None else w for w in weights]
    options = {"directed": graph.is_directed()} | options
    ids = np.empty(len(number), dtype=object)
    ids[:] = list(number)  # NumPy would turn nodes that are tuples into rows
    return from_arrays(rows if rows else np.empty((0, len(wanted))), ends.T, labels, node_ids=ids, **options)


def to_networkx(data: Data) -> Any:
    """The graph as one of networkx, a ``DiGraph`` if it is directed; the inverse of :func:`from_networkx`.

    The nodes are the ``node_ids``, or numbers. They have the attribute ``x``, a list, and if it is known, ``label``;
    edges have the attribute ``weight``, if they have weights.
    """
    import networkx as nx

    kind, graph = ("arc", nx.DiGraph()) if "arc_index" in data else ("edge", nx.Graph())
    names = range(data.num_nodes) if data.get("node_ids") is None else data.node_ids.tolist()
    graph.add_nodes_from((name, {"x": row}) for name, row in zip(names, data.x.to_dense().tolist(), strict=True))
    if data.y is not None:
        known = ((name, c) for name, c in zip(names, data.y.tolist(), strict=True) if c != UNLABELLED)
        nx.set_node_attributes(graph, {name: data.class_names[c] for name, c in known}, "label")
    ends = [(names[u], names[v]) for u, v in data[f"{kind}_index"].T.tolist()]
    graph.add_edges_from(ends)
    if f"{kind}_weight" in data:
        nx.set_edge_attributes(graph, dict(zip(ends, data[f"{kind}_weight"].tolist(), strict=True)), "weight")
    return graph


def from_data(data: Data, *, directed: bool = False, weight: str | Literal[False] = "edge_weight") -> Graph:
    """Make a checked graph from any PyG Data, or check one of this package again after its tensors were changed.

    Attributes that :class:`gcnsl.graph.Graph` does not have are left out, and so are those that no longer fit.

    Args:
        data: The graph, with ``edge_index`` or ``adj_t``. If this package made it from directed edges, it has
            ``arc_index``, which is read instead of ``edge_index``, whatever ``directed`` is.
        directed: Whether the directions of ``edge_index`` have a meaning and are kept too.
        weight: The attribute with the weights of the edges, which it may lack; ``"edge_attr"`` if that has a single
            column, for example. ``False`` ignores them.
    """
    edges, weights = data.edge_index, data.get(weight) if weight else None
    if edges is None and data.get("adj_t") is not None:
        edges, values = to_edge_index(data.adj_t)
        edges, weights = edges.flip(0), weights if values is None or (values == 1).all() else values
    if edges is None:
        raise InputError("data.edge_index is None: give the edges, 2 × E (2 × 0 for a graph without edges)")
    x, y = data.x, data.y
    n = next((len(part) for part in (x, y) if part is not None), data.get("num_nodes"))
    if n is None:
        raise InputError("x and y are both None: give features, or labels, so that the number of nodes is known")
    fitting = {"node_ids": n, "feature_names": 0 if x is None else x.shape[-1]}
    options = {name: data.get(name) for name in ("class_names", *MASKS)}
    options |= {name: data.get(name) for name, size in fitting.items() if len(data.get(name, ())) == size}
    if "arc_index" in data:
        arcs = as_array(data.arc_index, "arc_index")
        inside = arcs.max(initial=-1) < n
        if inside and np.array_equal(simple_undirected(*check_edges(arcs, n), n)[0], as_array(edges, "edge_index")):
            edges, directed, weights = arcs, True, data.get("arc_weight") if weight else None
        else:
            sentence = "edge_index was changed, but not arc_index: the directions are left out"
            warnings.warn(sentence, GraphWarning, stacklevel=2)
    x = np.empty((n, 0)) if x is None else x
    y = y[:, 0] if y is not None and y.dim() == 2 and y.shape[1] == 1 else y
    graph = from_arrays(x, edges, y, directed=directed, edge_weight=weights, **options)
    if isinstance(data, Graph):
        _keep_what_fits(data, graph)
    return graph


def _keep_what_fits(data: Graph, graph: Graph) -> None:
    """Give a graph that was checked again the other attributes that it had before, as far as they are still true."""
    graph.update({key: data[key] for key in ("name", "fold", "unknown", "weight_column", "table") if key in data})
    if len(data.get("node_names", ())) == len(graph.x):
        graph.update({key: data[key] for key in ("node_names", "name_column")})
    if "columns" in data and len(data.columns) == len(graph.x):
        encoded = data.encoder.transform(data.columns)
        if encoded.shape == graph.x.shape and (sparse.to_scipy(encoded) != sparse.to_scipy(graph.x)).nnz == 0:
            graph.columns, graph.encoder = data.columns, data.encoder
    kinds = {name: index for index, (_, name) in ALONG.items() if name in data and index in graph}
    if all(graph[i].equal(data[i].cpu()) and len(data[name]) == data[i].shape[1] for name, i in kinds.items()):
        graph.update({name: data[name].cpu() for name in kinds})
    else:
        sentence = "edge_index was changed, but not edge_relations: the kinds of edges are left out"
        warnings.warn(sentence, GraphWarning, stacklevel=3)
    if graph.edge_report.edges == data.edge_report.edges:
        graph.update({key: data[key] for key in ("edge_report", *OF_THE_WHOLE) if key in data})


def check_features(x: Any) -> Tensor:
    """Check features and convert them to float32 (n × d, n at least 1): dense to dense, sparse to torch CSR."""
    if isinstance(x, Tensor) and x.layout != torch.strided:
        x = sparse.to_scipy(x.cpu())
    values: Any = as_array(x, "x") if not sp.issparse(x) else sp.csr_array(x)
    if sp.issparse(values) and not values.has_canonical_format:
        values = values.copy()  # the caller's stays as it is
        values.sum_duplicates()
    if values.dtype.kind == "O":
        with contextlib.suppress(ValueError, TypeError):  # a DataFrame's numbers and truth values are objects
            values = values.astype(np.float64)
    if values.dtype.kind not in "biuf":
        raise InputError(f"x has dtype {values.dtype}: features must be numbers; encode or drop the others")
    if len(values.shape) != 2:
        raise InputError(f"x has shape {values.shape}: give a matrix with one row per node")
    if values.shape[0] == 0:
        raise InputError(f"x has shape {values.shape}: the graph is empty; give at least one node")
    with np.errstate(over="ignore"):  # a float64 beyond the range of float32 becomes inf and is refused below
        single = values.astype(np.float32, copy=False)
    stored = single.data if sp.issparse(single) else single
    if not np.isfinite(stored.sum(dtype=np.float64)):
        entries = sp.coo_array(single)
        bad = np.flatnonzero(~np.isfinite(entries.data))[0]
        row, column = entries.row[bad], entries.col[bad]
        value = values[row, column]
        raise InputError(
            f"x[{row}, {column}] is {value}: features can't be NaN or infinite in float32; fill, clip or drop it"
        )
    return sparse.from_scipy(single) if sp.issparse(single) else torch.from_numpy(np.ascontiguousarray(single))


def check_ids(node_ids: Any, num_nodes: int) -> NDArray[Any]:
    """Return the caller's names for the nodes (n): int64 if all are integers that fit, else as text.

    No name may be missing, and no two may be the same.
    """
    values = as_array(node_ids, "node_ids")
    if values.shape != (num_nodes,):
        raise InputError(f"node_ids has shape {values.shape}: give {num_nodes} entries, one per node")
    missing = np.flatnonzero(pd.isna(values))
    if len(missing):
        raise InputError(f"node_ids[{missing[0]}] is missing: give every node an id")
    kinds = {type(value) for value in values} if values.dtype.kind == "O" else {values.dtype.type}
    whole, bounds = all(issubclass(kind, int | np.integer) and kind is not bool for kind in kinds), np.iinfo(np.int64)
    if whole and bounds.min <= min(values, default=0) and max(values, default=0) <= bounds.max:
        ids = values.astype(np.int64)
    else:
        ids = np.array([_text(value) for value in values])
    index = pd.Index(ids)
    if not index.is_unique:
        raise InputError(f"node_ids has {index[index.duplicated()].tolist()[0]!r} twice: give every node its own id")
    return ids


def _text(value: Any) -> str:
    """A value as text that can be written to a file; NumPy would drop NUL characters at its end."""
    content = value if isinstance(value, bytes) else str(value).encode(errors="backslashreplace")
    return content.decode(errors="backslashreplace").replace("\0", "\\x00")
