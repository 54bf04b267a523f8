import numpy as np
import pytest
import torch
from scipy.special import log_softmax
from sklearn.ensemble import HistGradientBoostingClassifier

from gcnsl.graph import from_arrays
from gcnsl.plain.column_bins import column_bins, column_edges
from gcnsl.plain.plain_config import BoostedTreesConfig

from .cases import CLASSES, N, fit, graph, setup, trained_on
from .test_neighbour_columns import means, views_of

SMALL = {"leaf_nodes": 2, "leaves": 4, "trees": 25}


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(("stages", "rounds"), [(1, 10), (3, 25)])
def test_it_is_scikit_learn_s_on_the_same_columns(directed, classes, stages, rounds) -> None:
    data = graph(directed=directed)
    model, inputs = setup(BoostedTreesConfig(**SMALL), data)
    y = trained_on(data.y % classes)
    weight = torch.where(y == 0, 2.0, 1.0)
    fit(model, inputs, y, stages=stages, weight=weight)
    X, blocks = data.x.double().numpy(), [inputs[1].double().numpy(), data.x.double().numpy()]
    for A in map(means, views_of(data)):
        blocks += [A @ X, A @ A @ X]
    columns, rows = np.hstack(blocks).round(6), np.flatnonzero(y >= 0)
    edges = column_edges(columns[rows])
    reference = HistGradientBoostingClassifier(
        learning_rate=0.05, max_leaf_nodes=4, min_samples_leaf=2, max_iter=rounds, early_stopping=False
    ).fit(column_bins(columns[rows], edges), y[rows], weight[rows])
    expected = np.log(reference.predict_proba(column_bins(columns, edges)))
    found = log_softmax(model(*inputs).double().numpy(), axis=1)[:, :classes]
    np.testing.assert_allclose(found, expected, atol=1e-4)
    if classes < CLASSES:
        assert model(*inputs).softmax(dim=1)[:, classes:].max() < 1e-9, "no training node has this class"


@pytest.mark.parametrize(("outputs", "used"), [(2**62, 0), (0, 0), (2, 3)])
def test_a_number_of_outputs_that_no_training_gives_is_refused(outputs, used) -> None:
    model, _ = setup(BoostedTreesConfig(**SMALL), graph())
    changed = {"outputs": torch.tensor(outputs), "walk.used": torch.tensor(used)}
    with pytest.raises(ValueError, match=r"outputs"):
        model.load_state_dict(model.state_dict() | changed)


def test_there_are_no_more_stages_than_trees() -> None:
    data = graph()
    model, inputs = setup(BoostedTreesConfig(**SMALL), data)
    assert len(list(model.stages(inputs, data.y, torch.ones(N)))) == 3
    assert int(model.walk.used) == 25 * CLASSES


@pytest.mark.parametrize("sparse", [False, True])
def test_wide_features_are_reduced_to_their_leading_directions(sparse) -> None:
    data = graph(features=20)
    data.x = data.x.to_sparse_csr() if sparse else data.x
    config = BoostedTreesConfig(components=4)
    place = config.precompute(data, seed=0)
    _, values, directions = np.linalg.svd(data.x.to_dense().double().numpy())
    expected = data.x.to_dense().double().numpy() @ directions[:4].T
    x = config.inputs(data, place, seed=0)[0].numpy()
    np.testing.assert_allclose(np.abs(x), np.abs(expected), atol=0.05 * values[0])
    again = config.from_state(*place.state(), data, seed=0)
    assert again.basis.equal(place.basis)


def test_one_class_is_learned_without_a_fit() -> None:
    data = graph()
    model, inputs = setup(BoostedTreesConfig(**SMALL), data)
    fit(model, inputs, torch.where(trained_on(data.y) == 1, 1, -1))
    assert (model(*inputs).argmax(dim=1) == 1).all()


def test_a_graph_whose_nodes_have_the_same_degree_can_be_stored() -> None:
    ring = torch.stack([torch.arange(N), (torch.arange(N) + 1) % N])
    data = from_arrays(graph().x, ring, graph().y)
    model, inputs = setup(BoostedTreesConfig(**SMALL), data)
    fit(model, inputs, trained_on(data.y))
    assert model.walk.threshold.isfinite().all()


def test_it_can_be_fitted_again() -> None:
    data = graph()
    (model, inputs), (other, _) = (setup(BoostedTreesConfig(**SMALL), data) for _ in range(2))
    fit(model, inputs, trained_on(data.y.flip(0)), stages=3)
    again, anew = (fit(each, inputs, trained_on(data.y), stages=2) for each in (model, other))
    torch.testing.assert_close(again(*inputs), anew(*inputs))
