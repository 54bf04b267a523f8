import numpy as np
import pytest
import torch

from gcnsl.graph import from_arrays
from gcnsl.plain.neighbour_columns import PLACE_COLUMNS, Place, neighbour_blocks
from gcnsl.plain.plain_config import NeighbourColumnsConfig as Config
from gcnsl.spectral.structural_features import StructuralFeatures

from .cases import N, dense, graph, means


def views_of(data) -> list[np.ndarray]:
    A = dense(data.edge_index, weight=data.get("edge_weight"))
    if "arc_index" not in data:
        return [A]
    out = dense(data.arc_index, weight=data.get("arc_weight"))
    return [A, out, out.T]


@pytest.mark.parametrize(("directed", "weighted", "hops"), [(False, False, 0), (True, False, 1), (True, True, 3)])
def test_columns_are_means_of_means_in_every_view(directed, weighted, hops) -> None:
    data, config = graph(directed=directed, weighted=weighted), Config()
    x, place, *views = config.inputs(data, config.precompute(data, seed=0), seed=0)
    X = data.x.double().numpy()
    expected = [X]
    for A in map(means, views_of(data)):
        expected += [np.linalg.matrix_power(A, power) @ X for power in range(1, hops + 1)]
    found = list(neighbour_blocks(data.x, views, hops))
    np.testing.assert_allclose(torch.cat(found, dim=1), np.hstack(expected), atol=1e-5)
    assert x.shape == data.x.shape
    assert place.shape == (N, PLACE_COLUMNS)


def test_a_node_has_its_out_degree_and_in_degree() -> None:
    data, config = graph(directed=True), Config()
    place = config.inputs(data, config.precompute(data, seed=0), seed=0)[1]
    out = dense(data.arc_index)
    np.testing.assert_allclose(place[:, -2:], np.log1p(np.stack([out.sum(1), out.sum(0)], axis=1)), rtol=1e-5)
    structure = StructuralFeatures.fit(data.edge_index, N).of(data.edge_index, N)
    torch.testing.assert_close(place[:, :-2], structure)


def test_places_of_known_nodes_stay_and_the_state_brings_them_back() -> None:
    data, config = graph(), Config()
    place = Place.fit(data)
    grown = from_arrays(torch.cat([data.x, data.x[:1]]), torch.cat([data.edge_index, torch.tensor([[N], [3]])], dim=1))
    assert place.grown(grown).values[:N].equal(place.values)
    assert place.grown(grown).values.shape == (N + 1, PLACE_COLUMNS - 2)
    again = config.from_state(*place.state(), data, seed=0)
    assert again.values.equal(place.values)
    assert again.basis is None
