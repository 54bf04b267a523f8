import math

import pytest
import torch
from torch_geometric.utils import homophily

from gcnsl import from_arrays, synthetic
from gcnsl.graph import adjusted_homophily, arc_homophily, edge_homophily, node_homophily
from gcnsl.graph.summary import class_compatibility

from .cases import TWIN_EDGES as EDGES
from .cases import TWIN_X as X
from .cases import TWIN_Y as Y


def test_by_hand() -> None:
    # edges 0-1 (agree), 1-2, 2-3; the loop 2-2 and 3-4 (4 unlabelled) count for nothing
    data = from_arrays(torch.eye(6), [[0, 1, 2, 2, 3], [1, 2, 3, 2, 4]], [0, 0, 1, 2, -1, 0])
    assert edge_homophily(data.edge_index, data.y) == pytest.approx(1 / 3)
    assert edge_homophily(data.edge_index, data.y, loops=True) == pytest.approx(2 / 4), "as in the paper"
    # node 0: 1/1, node 1: 1/2, node 2: 0/2, node 3: 0/1; 4 is unlabelled, 5 has no neighbour
    assert node_homophily(data.edge_index, data.y) == pytest.approx((1 + 1 / 2 + 0 + 0) / 4)
    # edge ends: class 0 has 1 + 2 = 3, class 1 has 1 + 1 = 2, class 2 has 1
    chance = (3**2 + 2**2 + 1**2) / 6**2
    assert adjusted_homophily(data.edge_index, data.y) == pytest.approx((1 / 3 - chance) / (1 - chance))


def test_arcs_by_hand() -> None:
    # arcs 0→1 (agree), 1→2, 2→1; the loop 2→2 and 3→4 (4 unlabelled) count for nothing
    data = from_arrays(torch.eye(6), [[0, 1, 2, 2, 3], [1, 2, 1, 2, 4]], [0, 0, 1, 2, -1, 0], directed=True)
    # out: node 0 1/1, node 1 0/1, node 2 0/1; in: node 1 1/2, node 2 0/1
    assert arc_homophily(data.arc_index, data.y) == pytest.approx({"arc": 1 / 3, "out": 1 / 3, "in": 1 / 4})
    assert all(map(math.isnan, arc_homophily(torch.empty(2, 0, dtype=torch.long), data.y).values()))


def test_both_directions_of_all_edges_are_the_undirected_graph() -> None:
    data = synthetic(n=200, h=0.3, classes=4, degree=6, features=8, seed=1)
    found = arc_homophily(data.edge_index, data.y)
    assert found["arc"] == pytest.approx(edge_homophily(data.edge_index, data.y))
    assert found["out"] == found["in"] == node_homophily(data.edge_index, data.y)


@pytest.mark.parametrize("measure", [edge_homophily, node_homophily, adjusted_homophily])
def test_no_edges_is_nan(measure) -> None:
    assert math.isnan(measure(torch.empty(2, 0, dtype=torch.long), torch.tensor([0, 1])))


def test_agrees_with_torch_geometric() -> None:
    data = synthetic(n=500, h=0.3, classes=4, degree=6, features=8, seed=1)
    once = data.edge_index[:, data.edge_index[0] <= data.edge_index[1]]
    assert edge_homophily(data.edge_index, data.y) == pytest.approx(homophily(once, data.y, method="edge"), abs=1e-6)
    assert node_homophily(data.edge_index, data.y) == pytest.approx(
        homophily(data.edge_index, data.y, method="node"), abs=1e-6
    )


def test_adjusted_is_zero_for_random_edges() -> None:
    generator = torch.Generator().manual_seed(0)
    edges = torch.randint(0, 2000, (2, 40_000), generator=generator)
    y = (torch.rand(2000, generator=generator) < 0.9).long()
    data = from_arrays(torch.ones(2000, 1), edges, y)
    assert edge_homophily(data.edge_index, data.y) > 0.75
    assert abs(adjusted_homophily(data.edge_index, data.y)) < 0.02


def test_class_compatibility() -> None:
    data = from_arrays(X, EDGES, Y)
    shares = class_compatibility(data.edge_index, data.y, 2)
    # class a: its four edge ends all reach b; class b: four reach a, two lie on 3-4; the loop is no neighbour
    assert torch.allclose(shares, torch.tensor([[0, 1], [4 / 6, 2 / 6]], dtype=torch.double))
