import numpy as np
import pytest
import torch
from sklearn.ensemble import HistGradientBoostingClassifier
from torch.nn import functional

from gcnsl import synthetic
from gcnsl.datasets import with_random_split
from gcnsl.graph import from_arrays, split_masks
from gcnsl.graph.edges import edges_by_relation
from gcnsl.methods import METHODS, prepare
from gcnsl.methods import fit as fit_method
from gcnsl.plain.neighbour_columns import (
    PLACE_COLUMNS,
    VIEWS,
    Place,
    known_links,
    known_links_by_kind,
    label_columns,
    neighbour_blocks,
)
from gcnsl.plain.plain_config import NeighbourColumnsConfig as Config
from gcnsl.spectral.structural_features import StructuralFeatures

from .cases import CLASSES, N, dense, graph, means, trained_on


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


def label_counts(data, y, views=("undirected", "out", "in")) -> torch.Tensor:
    """The numbers of known labels that the columns tell of, by view and class, last over two steps (n × views × C)."""
    known = functional.one_hot(y.clamp(min=0), CLASSES).float() * (y >= 0)[:, None]
    columns = label_columns(known, *(known_links(data, view) for view in views)).view(len(y), -1, CLASSES + 1)
    prior = (known.sum(dim=0) + 1) / (known.sum() + CLASSES)
    return columns[:, :, :-1] * (columns[:, :, -1:].expm1() + 2) - 2 * prior


def test_a_label_is_seen_by_others_and_never_by_its_own_node() -> None:
    data = graph(directed=True)
    before = label_counts(data, data.y)
    for node in range(N):
        other = torch.where(torch.arange(N) == node, (data.y + 1) % CLASSES, data.y)
        changed = (label_counts(data, other) - before).abs().amax(dim=2) > 0.5
        assert not changed[node].any()
        near = torch.from_numpy(np.stack([view[:, node] > 0 for view in views_of(data)], axis=1))
        assert changed[:, :3].equal(near), "those that have it as a neighbour, in this direction"


def test_only_labels_of_training_nodes_are_known() -> None:
    data = with_random_split(synthetic(n=90, h=0.7, classes=CLASSES, degree=4, seed=0), seed=0)
    masks = split_masks(data, 0)
    ready = prepare(METHODS["boosted-trees"].with_options(trees=10), data, seed=0, device=torch.device("cpu"))
    model = fit_method(ready, train_mask=masks["train"], val_mask=masks["val"], seed=0).model
    assert model.known.equal(functional.one_hot(data.y, CLASSES) * masks["train"][:, None].float())


def kinds_of(ends: torch.Tensor) -> torch.Tensor:
    return (ends[0] * 5 + ends[1]) % 3


def with_kinds(data, ends):
    data.update(edges_by_relation(data, ends.int().numpy(), kinds_of(ends).numpy(), 3))
    return data


@pytest.mark.parametrize("directed", [False, True])
def test_shares_by_kind_are_those_among_the_edges_of_the_kind(directed) -> None:
    data, y = graph(directed=directed), trained_on(graph().y)
    ends, views = data.edge_index[:, data.edge_index[0] < data.edge_index[1]], VIEWS if directed else VIEWS[:1]
    known = functional.one_hot(y.clamp(min=0), CLASSES).float() * (y >= 0)[:, None]
    links = [known_links(data, view) for view in views]
    columns = label_columns(known, *links, *known_links_by_kind(with_kinds(data, ends), views))
    blocks = columns.split(CLASSES + 1, dim=1)
    assert torch.cat([*blocks[: len(views)], blocks[-1]], dim=1).equal(label_columns(known, *links)), "as without kinds"
    expected = []
    for kind in range(3):
        part = from_arrays(data.x, ends[:, kinds_of(ends) == kind], y, directed=directed)
        own = (label_columns(known, known_links(part, view)) for view in views[1:] or views)
        expected += [columns[:, : CLASSES + 1] for columns in own]
    torch.testing.assert_close(torch.cat(blocks[len(views) : -1], dim=1), torch.cat(expected, dim=1))


@pytest.mark.parametrize("directed", [False, True])
def test_shares_of_shuffled_labels_tell_a_node_nothing_of_its_own(directed) -> None:
    """All labels are known here: what comes back to its own node, trees find in one half of the nodes for the other."""
    n, half = 1500, np.arange(1500) < 750
    data = synthetic(n=n, h=0.5, classes=2, degree=4, features=3, seed=0)
    y = torch.randint(2, (n,), generator=torch.Generator().manual_seed(1))
    ends = data.edge_index[:, data.edge_index[0] < data.edge_index[1]]
    data, labels = from_arrays(data.x, ends, y, directed=directed), functional.one_hot(y).float()
    views = VIEWS if directed else VIEWS[:1]
    links = [*(known_links(data, view) for view in views), *known_links_by_kind(with_kinds(data, ends), views)]
    assert len(links) == (3 + 2 * 3 if directed else 1 + 3)

    def accuracy(columns) -> float:
        trees = HistGradientBoostingClassifier(max_iter=30, random_state=0).fit(columns[half], y[half])
        return trees.score(columns[~half], y[~half])

    assert abs(accuracy(label_columns(labels, *links)) - 0.5) < 0.06
    with_the_way_back = links[0] @ (links[0] @ labels)
    assert accuracy(with_the_way_back) > 0.65, "so that a leak would be noticed"


def test_places_of_known_nodes_stay_and_the_state_brings_them_back() -> None:
    data, config = graph(), Config()
    place = Place.fit(data)
    grown = from_arrays(torch.cat([data.x, data.x[:1]]), torch.cat([data.edge_index, torch.tensor([[N], [3]])], dim=1))
    assert place.grown(grown).values[:N].equal(place.values)
    assert place.grown(grown).values.shape == (N + 1, PLACE_COLUMNS - 2)
    again = config.from_state(*place.state(), data)
    assert again.values.equal(place.values)
    assert again.basis is None
