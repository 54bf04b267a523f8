import pytest
import torch

from gcnsl import InputError, from_arrays, synthetic
from gcnsl.nn import normalized_adjacency, relative_weights, shift_features
from gcnsl.nn.preprocessing import graph_adjacency, links_to_known

X = torch.tensor([[3.0, 4.0], [0.0, 0.0], [-1.0, 1.0]])


def test_shift_is_one_column_drawn_from_the_seed() -> None:
    columns = set()
    for seed in range(10):
        change = shift_features(X, seed=seed) - X
        (column,) = change[0].nonzero()
        columns.add(int(column))
        assert change[:, column].flatten().tolist() == [0.5] * 3
        assert change.sum() == 1.5
        assert shift_features(X, seed=seed).equal(shift_features(X, seed=seed))
    assert columns == {0, 1}
    with pytest.raises(InputError, match=r"amount\(-1\) must be >= 0"):
        shift_features(X, -1)


@pytest.mark.parametrize(
    ("self_loops", "norm", "weighted"), [(True, "symmetric", False), (False, "row", True), (True, "row", True)]
)
def test_adjacency_is_the_formula(self_loops, norm, weighted) -> None:
    data = synthetic(n=30, h=0.5, classes=3, degree=4, features=12, seed=3)
    W = torch.rand(30, 30, generator=torch.Generator().manual_seed(0)) if weighted else torch.ones(30, 30)
    W = W + W.T if weighted else W
    edges = torch.cat([data.edge_index, torch.tensor([[5], [5]])], dim=1)  # a loop of its own
    A = torch.zeros(30, 30)
    A[edges[0], edges[1]] = W[edges[0], edges[1]]
    loops = A.diagonal()
    A.diagonal().copy_(torch.where(loops > 0, loops, 1.0) if self_loops else torch.zeros(30))
    d = A.sum(1)
    root = torch.where(d > 0, d.rsqrt(), 0)
    expected = root[:, None] * A * root if norm == "symmetric" else torch.where(d > 0, 1 / d, 0)[:, None] * A
    weight = W[edges[0], edges[1]] if weighted else None
    actual = normalized_adjacency(edges, 30, weight=weight, self_loops=self_loops, norm=norm) @ torch.eye(30)
    assert torch.allclose(actual, expected)


def test_row_sums_may_stand_at_both_ends() -> None:
    edges = torch.tensor([[0, 0, 1], [1, 2, 2]])  # node 2 points to nobody
    actual = normalized_adjacency(edges, 3, self_loops=False, norm="row-sums") @ torch.eye(3)
    assert torch.allclose(actual, torch.tensor([[0, 0.5**0.5, 0.5**0.5], [0, 0, 1], [0, 0, 0]]))


@pytest.mark.parametrize("norm", ["symmetric", "row"])
def test_weights_of_any_size_give_finite_entries(norm) -> None:
    for weight in ([1e-45, 1.0], [3e38, 3e38], [1e-45, 3e38], [1e-45, 1e-45]):
        data = from_arrays(X, [[0, 1], [1, 2]], edge_weight=weight)
        for self_loops in (True, False):
            relative = relative_weights(data)
            found = normalized_adjacency(data.edge_index, 3, weight=relative, self_loops=self_loops, norm=norm)
            assert found.values.isfinite().all()
            assert found.values.max() <= 1


def arcs_graph(**more):
    """Five nodes; 0 → 1 ↔ 2, 3 → 2, a loop at 3, and node 4 alone."""
    arcs = torch.tensor([[0, 1, 2, 3, 3], [1, 2, 1, 2, 3]])
    return from_arrays(torch.eye(5), arcs, torch.arange(5) % 2, directed=True, **more)


def dense_arcs(weights=(1.0, 1.0, 1.0, 1.0)):
    out = torch.zeros(5, 5)
    for (i, j), weight in zip(((0, 1), (1, 2), (2, 1), (3, 2)), weights, strict=True):
        out[i, j] = weight
    return out


@pytest.mark.parametrize("norm", ["row", "symmetric"])
@pytest.mark.parametrize("direction", ["out", "in", "undirected"])
def test_a_node_sees_others_along_a_direction(direction, norm) -> None:
    out = dense_arcs()
    a = {"out": out, "in": out.T, "undirected": torch.maximum(out, out.T)}[direction]
    rows, columns = (a.sum(dim=side).clamp(min=1) for side in (1, 0))
    expected = a / rows[:, None] if norm == "row" else a / (rows[:, None] * columns).sqrt()
    made = graph_adjacency(arcs_graph(), self_loops=False, norm=norm, direction=direction)
    torch.testing.assert_close(made.to_dense(), expected)


def test_weights_of_arcs_count_in_units_of_the_mean_edge() -> None:
    data = arcs_graph(edge_weight=torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0]))
    unit = data.edge_weight.mean()
    links = links_to_known(data, "out").to_dense()
    torch.testing.assert_close(links, dense_arcs((1.0, 2.0, 3.0, 4.0)) / unit)


def test_links_to_nodes_added_later_are_left_out() -> None:
    data = arcs_graph()
    data.known_nodes = 2
    assert links_to_known(data, "out").to_dense().equal(dense_arcs()[:, :2])
    assert links_to_known(data, "in").to_dense().equal(dense_arcs().T[:, :2])
