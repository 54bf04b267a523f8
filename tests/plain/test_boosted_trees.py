import itertools
import os
import subprocess
import sys
from pathlib import Path

import lightgbm
import networkx
import numpy as np
import pytest
import torch
from scipy.special import log_softmax
from sklearn.ensemble import HistGradientBoostingClassifier

from gcnsl.errors import InputError
from gcnsl.graph import from_arrays
from gcnsl.plain import boosted_trees
from gcnsl.plain.boosted_trees import LightGBMWarning
from gcnsl.plain.neighbour_columns import PLACE_COLUMNS, Place
from gcnsl.plain.plain_config import BoostedTreesConfig

from .cases import CLASSES, N, dense, fit, graph, means, setup, trained_on
from .test_neighbour_columns import views_of

SMALL = {"leaf_nodes": 2, "leaves": 4, "trees": 25}


@pytest.fixture
def without_lightgbm(monkeypatch) -> None:
    monkeypatch.setattr(boosted_trees, "_lightgbm", lambda: None)


def columns_of(data, y=None) -> np.ndarray:
    """All columns, by loops over nodes and neighbours; ``y`` are the known labels."""
    X, A = data.x.double().numpy(), dense(data.edge_index)
    blocks = [Place.fit(data).values.double().numpy()]
    arcs = dense(data.arc_index) if "arc_index" in data else A
    blocks += [np.log1p(arcs.sum(axis=1))[:, None], np.log1p(arcs.sum(axis=0))[:, None], X]
    for view in map(means, views_of(data)):
        blocks += [view @ X, view @ view @ X]
    linked = np.flatnonzero(A.sum(axis=1))
    rank = networkx.pagerank(networkx.from_numpy_array(A[np.ix_(linked, linked)]), tol=1e-12)
    by_node = dict(zip(linked, rank.values(), strict=True))
    blocks.append(np.log([[len(linked) * by_node[i] if i in by_node else 0.15] for i in range(N)]))
    for summary in (np.max, np.min, np.std):
        blocks.append(np.array([summary(X[A[i] > 0], axis=0) if A[i].any() else X[i] * np.nan for i in range(N)]))
    if y is not None:
        blocks += label_blocks([A] if arcs is A else [A, arcs, arcs.T], y.tolist())
    return np.hstack(blocks).astype(np.float32)


def label_blocks(views, y) -> list[np.ndarray]:
    """Shares and logarithms of the numbers of neighbours' known labels, then those over two steps, by counting."""
    prior = np.array([1 + y.count(c) for c in range(CLASSES)]) / (CLASSES + sum(c >= 0 for c in y))

    def shares(counts):
        total = counts.sum(axis=1, keepdims=True)
        return [(counts + 2 * prior) / (total + 2), np.log1p(total)]

    blocks = []
    for view in views:
        counts = [[sum(y[j] == c for j in range(N) if view[i, j]) for c in range(CLASSES)] for i in range(N)]
        blocks += shares(np.array(counts, dtype=float))
    twice, A = np.zeros((N, CLASSES)), views[0]
    for i, j, k in itertools.product(range(N), repeat=3):
        if A[i, j] and A[j, k] and k != i and y[k] >= 0:
            twice[i, y[k]] += 1
    return blocks + shares(twice)


@pytest.mark.parametrize("labels", [False, True])
@pytest.mark.parametrize("directed", [False, True])
def test_the_columns_are_those_of_the_definition(directed, labels) -> None:
    data, config = graph(directed=directed), BoostedTreesConfig(**SMALL, labels=labels)
    model, inputs = setup(config, data)
    y = trained_on(data.y)
    fit(model, inputs, y)
    expected = columns_of(data, y if labels else None)
    np.testing.assert_allclose(model._columns(*inputs), expected, atol=2e-4)


def test_lightgbm_works_in_one_thread() -> None:
    """Processes that fit several models at once would wait for each other's threads."""
    fit = """if True:
        import os
        import numpy as np
        from gcnsl.plain.boosted_trees import _grow_by_lightgbm, _lightgbm, _sums_of_trees
        x, y = np.random.default_rng(0).random((5000, 20)), np.arange(5000) % 3
        _lightgbm()
        before = len(os.listdir("/proc/self/task"))
        options = {"learning_rate": 0.1, "num_leaves": 8, "min_data_in_leaf": 5}
        (saved, _), *_ = _grow_by_lightgbm(x, y, np.ones(5000), x, trees=10, options=options)
        _sums_of_trees(saved, x)
        print(len(os.listdir("/proc/self/task")) - before)
    """
    if not Path("/proc/self/task").exists():
        pytest.skip("threads can't be counted here")
    environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    done = subprocess.run([sys.executable, "-c", fit], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout == "0\n"


def test_new_nodes_have_the_columns_of_a_graph_in_which_they_are_not_labelled() -> None:
    data = graph()
    config = BoostedTreesConfig(**SMALL)
    model, inputs = setup(config, data)
    fit(model, inputs, trained_on(data.y))
    links = torch.tensor([[N, N, 3], [3, 5, N]])
    grown = from_arrays(torch.cat([data.x, data.x[:1]]), torch.cat([data.edge_index, links], dim=1))
    grown.known_nodes = N
    place = config.precompute(data, seed=0).grown(grown)
    found = model._columns(*config.inputs(grown, place, seed=0))
    assert found.shape == (N + 1, model._columns(*inputs).shape[1])
    assert np.isfinite(found[:, -CLASSES - 1 :]).all()
    counts = np.bincount(trained_on(data.y)[[3, 5]].numpy(), minlength=CLASSES)
    labelled = [int(c) for c in trained_on(data.y)[:24]]
    prior = np.array([1 + labelled.count(c) for c in range(CLASSES)]) / (CLASSES + 24)
    np.testing.assert_allclose(found[N, -2 * CLASSES - 2 : -CLASSES - 2], (counts + 2 * prior) / 4, atol=1e-6)


@pytest.mark.parametrize(("directed", "classes", "stages", "rounds"), [(True, 2, 1, 10), (False, 3, 3, 25)])
def test_it_is_lightgbm_s_on_the_same_columns(directed, classes, stages, rounds, capfd) -> None:
    data = graph(directed=directed)
    model, inputs = setup(BoostedTreesConfig(**SMALL), data)
    y = trained_on(data.y % classes)
    weight = torch.where(y == 0, 2.0, 1.0)
    fit(model, inputs, y, stages=stages, weight=weight)
    columns, rows = model._columns(*inputs), np.flatnonzero(y >= 0)
    reference = lightgbm.LGBMClassifier(
        n_estimators=rounds, learning_rate=0.05, num_leaves=4, min_child_samples=2, max_bin=63, verbosity=-1
    ).fit(columns[rows], y[rows].numpy(), weight[rows].numpy())
    expected = np.log(reference.predict_proba(columns, validate_features=False))
    found = log_softmax(model(*inputs).double().numpy(), axis=1)[:, :classes]
    np.testing.assert_allclose(found, expected, atol=1e-3)
    if classes < CLASSES:
        assert model(*inputs).softmax(dim=1)[:, classes:].max() < 1e-9, "no training node has this class"
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.usefixtures("without_lightgbm")
def test_without_lightgbm_it_is_scikit_learn_s(classes) -> None:
    data = graph()
    model, inputs = setup(BoostedTreesConfig(**SMALL), data)
    y = trained_on(data.y % classes)
    fit(model, inputs, y, stages=3)
    columns, rows = model._columns(*inputs), np.flatnonzero(y >= 0)
    reference = HistGradientBoostingClassifier(
        learning_rate=0.05, max_leaf_nodes=4, min_samples_leaf=2, max_iter=25, max_bins=63, early_stopping=False
    ).fit(columns[rows], y[rows])
    expected = np.log(reference.predict_proba(columns))
    found = log_softmax(model(*inputs).double().numpy(), axis=1)[:, :classes]
    np.testing.assert_allclose(found, expected, atol=1e-3)
    again, _ = setup(BoostedTreesConfig(**SMALL), data)
    again.load_state_dict(model.state_dict())
    assert again(*inputs).equal(model(*inputs))


def test_a_missing_lightgbm_is_said_in_a_sentence(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    boosted_trees._lightgbm.cache_clear()
    try:
        with pytest.warns(LightGBMWarning, match=r"^LightGBM can't be loaded.*install the system's OpenMP"):
            assert boosted_trees._lightgbm() is None
        with pytest.raises(InputError, match="install the system's OpenMP"):
            boosted_trees._sums_of_trees(b"tree\n", np.zeros((1, 1)))
    finally:
        boosted_trees._lightgbm.cache_clear()


def test_trees_are_saved_as_text() -> None:
    data = graph()
    (model, inputs), (again, _) = (setup(BoostedTreesConfig(**SMALL), data) for _ in range(2))
    fit(model, inputs, trained_on(data.y), stages=2)
    state = model.state_dict()
    assert bytes(state["_extra_state"].numpy()).decode().startswith("tree\nversion=")
    again.load_state_dict(state)
    assert again(*inputs).equal(model(*inputs))


@pytest.mark.parametrize("sparse", [False, True])
def test_wide_features_are_reduced_to_their_leading_directions(sparse) -> None:
    data = graph(features=20)
    data.x = data.x.to_sparse_csr() if sparse else data.x
    config = BoostedTreesConfig(components=4)
    place = config.precompute(data, seed=0)
    _, values, directions = np.linalg.svd(data.x.to_dense().double().numpy())
    expected = data.x.to_dense().double().numpy() @ directions[:4].T
    x = config.inputs(data, place, seed=0)[0].numpy()[:, PLACE_COLUMNS : PLACE_COLUMNS + 4]
    np.testing.assert_allclose(np.abs(x), np.abs(expected), atol=0.05 * values[0])
    again = config.from_state(*place.state(), data)
    assert again.basis.equal(place.basis)


@pytest.mark.slow
def test_lightgbm_does_without_the_system_s_openmp() -> None:
    """Slim machines have none; torch brings one."""
    found = [Path(folder, "libgomp.so.1") for folder in ("/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu")]
    library = next((path for path in found if path.exists()), None)
    if library is None or subprocess.run(["unshare", "-rm", "true"], check=False).returncode:
        pytest.skip("there is none, or nothing can be mounted here")
    fit = "import torch; from gcnsl.plain.boosted_trees import _lightgbm; print(_lightgbm().__name__)"
    hidden = f"mount --bind /dev/null {library.resolve()} && {sys.executable} -c '{fit}'"
    done = subprocess.run(["unshare", "-rm", "sh", "-c", hidden], capture_output=True, text=True, check=False)
    assert done.stdout == "lightgbm\n", done.stderr
