import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.data import Data

from gcnsl import InputError, from_arrays, from_data, from_networkx, from_scipy
from gcnsl.graph.edges import edge_parts
from gcnsl.graph.sources import check_ids

from .cases import EDGES, X, Y

SIMPLE = [[0, 1, 1, 2, 3], [1, 0, 2, 1, 3]]


def test_every_source_gives_the_same_graph() -> None:
    plain = from_arrays(X, EDGES, Y)
    adjacency = sp.coo_array((np.ones(4), EDGES), shape=(4, 4))
    graph = nx.DiGraph([(10, 20), (20, 10), (20, 30), (40, 40)])
    for node, features, label in zip(graph, X, [0, 1, 1, None], strict=True):
        graph.nodes[node].update(
            x=features, a=features[0], b=features[1], **({} if label is None else {"label": label})
        )
    same = [
        from_scipy(adjacency, X, Y),
        from_data(Data(x=torch.tensor(X), edge_index=torch.tensor(EDGES), y=torch.tensor(Y))),
        from_networkx(graph),
        from_networkx(graph, features=["a", "b"]),
    ]
    for data in [plain, *same]:
        assert data.edge_index.tolist() == SIMPLE
        assert data.x.dtype == torch.float32
        assert data.x.tolist() == X.tolist()
        assert data.y.tolist() == Y
        assert data.class_names == [0, 1]
    assert same[2].node_ids.tolist() == [10, 20, 30, 40]


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_every_source_keeps_directions_and_weights(directed, weighted) -> None:
    weights = [1.0, 2.0, 3.0, 4.0]
    plain = from_arrays(X, EDGES, directed=directed, edge_weight=weights if weighted else None)
    given = Data(x=torch.tensor(X), edge_index=torch.tensor(EDGES), edge_weight=torch.tensor(weights))
    column = Data(x=torch.tensor(X), edge_index=torch.tensor(EDGES), edge_attr=torch.tensor(weights)[:, None])
    graph = nx.DiGraph()
    graph.add_nodes_from((node, {"x": x}) for node, x in enumerate(X))
    graph.add_weighted_edges_from(zip(*EDGES, weights, strict=True))
    same = [
        plain,
        from_scipy(sp.coo_array((weights, EDGES), shape=(4, 4)), X, weighted=weighted, directed=directed),
        from_data(given, directed=directed, weight="edge_weight" if weighted else False),
        from_data(column, directed=directed, weight="edge_attr" if weighted else False),
        from_networkx(graph, weight="weight" if weighted else False, directed=directed),
    ]
    for data in [*same, *(from_data(once) for once in same)]:
        parts = edge_parts(data)
        assert list(parts) == list(edge_parts(plain))
        assert all(part.equal(plain[name]) for name, part in parts.items())


def test_networkx_says_itself_whether_it_is_directed_and_weighted() -> None:
    for kind in (nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph):
        graph = kind()
        graph.add_nodes_from(range(3), x=[1.0])
        graph.add_edge(1, 0, weight=3)
        graph.add_edge(1, 2)
        data = from_networkx(graph)
        assert ("arc_index" in data) == graph.is_directed()
        assert data.edge_weight.tolist() == [3, 3, 1, 1]
        graph.edges[next(iter(graph.edges))].clear()
        assert "edge_weight" not in from_networkx(graph)


def test_zeros_and_repeats_of_a_matrix_count_once() -> None:
    entries = ([1.0, 2.0, 0.0], ([0, 0, 1], [1, 1, 2]))
    data = from_scipy(sp.coo_array(entries, shape=(4, 4)), X, weighted=True)
    assert data.edge_index.tolist() == [[0, 1], [1, 0]]
    assert data.edge_weight.tolist() == [3, 3]


def test_bad_sources_are_named() -> None:
    with pytest.raises(InputError, match=r"adjacency has shape \(2, 3\)"):
        from_scipy(sp.csr_array((2, 3)), X)
    with pytest.raises(InputError, match="x has 4 rows, but adjacency has 3"):
        from_scipy(sp.csr_array((3, 3)), X)
    with pytest.raises(InputError, match="x and y are both None"):
        from_data(Data(edge_index=torch.tensor(EDGES)))
    with pytest.raises(InputError, match=r"data\.edge_index is None"):
        from_data(Data(x=torch.tensor(X)))
    with pytest.raises(InputError, match="node 1 has no attribute 'x'"):
        from_networkx(nx.path_graph([1, 2]))
    with pytest.raises(InputError, match="the graph is empty"):
        from_networkx(nx.Graph())


NAN, BIG = X.copy(), X.copy()
NAN[2, 1], BIG[0, 1] = np.nan, 1e300


def test_sparse_features_stay_sparse() -> None:
    for sparse in (sp.csr_array(X), sp.coo_matrix(X), torch.tensor(X).to_sparse(), torch.tensor(X).to_sparse_csr()):
        data = from_arrays(sparse, EDGES, Y)
        assert data.x.layout == torch.sparse_csr
        assert data.x.to_dense().tolist() == X.tolist()


def test_sparse_features_in_any_order_and_with_repeated_entries_are_what_scipy_reads() -> None:
    x = sp.csr_array(([1.0, 2.0, 3.0, 4.0], [2, 0, 1, 1], [0, 2, 2, 4, 4]), shape=(4, 3))
    given = x.indices.copy()
    data = from_arrays(x, EDGES, Y)
    with torch.sparse.check_sparse_tensor_invariants():
        torch.sparse_csr_tensor(data.x.crow_indices(), data.x.col_indices(), data.x.values(), (4, 3))
    assert data.x.to_dense().tolist() == x.toarray().tolist()
    assert x.indices.tolist() == given.tolist(), "the caller's matrix stays as it is"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"x": np.empty((0, 2))}, r"x has shape \(0, 2\): the graph is empty"),
        ({"x": None, "y": None}, "x and y are both None"),
        ({"x": np.ones(4)}, r"x has shape \(4,\): give a matrix"),
        ({"x": NAN}, r"x\[2, 1\] is nan"),
        ({"x": sp.csr_array(NAN)}, r"x\[2, 1\] is nan"),
        ({"x": BIG}, r"x\[0, 1\] is 1e\+300"),
        ({"x": [["a", "b"]] * 4}, "features must be numbers"),
        ({"x": [[1], [2, 3]]}, "x is not an array"),
    ],
)
def test_bad_features_are_named(arguments, message) -> None:
    with pytest.raises(InputError, match=message):
        from_arrays(**{"x": X, "edge_index": EDGES, "y": Y, **arguments})


@pytest.mark.parametrize(
    ("ids", "kept"),
    [
        ([3, 1, 2], [3, 1, 2]),
        (range(3), [0, 1, 2]),
        (np.array([3, 1, 2], dtype=np.uint8), [3, 1, 2]),
        (np.array([1, 2, 2**63], dtype=np.uint64), ["1", "2", "9223372036854775808"]),
        ([1, 2, 10**30], ["1", "2", str(10**30)]),
        (np.array([0, 1, 2], dtype="datetime64[D]"), ["1970-01-01", "1970-01-02", "1970-01-03"]),
        ([b"a", b"\xff", "c"], ["a", "\\xff", "c"]),
        (["a", "\ud800", "a\0"], ["a", "\\ud800", "a\\x00"]),
        ([1, "b", (2, 3)], ["1", "b", "(2, 3)"]),
        ([0.5, 1.5, 2.5], ["0.5", "1.5", "2.5"]),
        ([True, False, "x"], ["True", "False", "x"]),
    ],
)
def test_ids_are_integers_or_text(ids, kept) -> None:
    given = np.empty(3, dtype=object)
    given[:] = list(ids)
    assert check_ids(given, 3).tolist() == kept
    if not any(isinstance(name, tuple) for name in ids):
        assert check_ids(ids if isinstance(ids, np.ndarray) else given, 3).dtype.kind in "iU"


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([1, 2], r"has shape \(2,\): give 3 entries"),
        (7, r"has shape \(\)"),
        ([[1], [2], [3]], r"has shape \(3, 1\)"),
        ([1, None, 2], r"node_ids\[1\] is missing: give every node an id"),
        ([1.0, 2.0, float("nan")], r"node_ids\[2\] is missing"),
        ([1, 2, 1], "has 1 twice: give every node its own id"),
        (["a", "b", "a"], "has 'a' twice"),
        ([1, "1", 2], "has '1' twice"),
    ],
)
def test_bad_ids_are_named(ids, message) -> None:
    with pytest.raises(InputError, match=message):
        check_ids(ids, 3)
