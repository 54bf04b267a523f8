import subprocess
import sys
from pathlib import Path

import lightgbm
import numpy as np
import pytest
import torch
from scipy.special import log_softmax
from sklearn.ensemble import HistGradientBoostingClassifier

from gcnsl import NodeClassifier
from gcnsl.errors import InputError
from gcnsl.plain import boosted_trees
from gcnsl.plain.boosted_trees import LightGBMWarning
from gcnsl.plain.plain_config import BoostedTreesConfig

from .cases import CLASSES, N, fit, graph, setup, trained_on
from .test_neighbour_columns import means, views_of

SMALL = {"leaf_nodes": 2, "leaves": 4, "trees": 25}


@pytest.fixture
def without_lightgbm(monkeypatch) -> None:
    monkeypatch.setattr(boosted_trees, "_lightgbm", lambda: None)


def columns_of(data, place) -> np.ndarray:
    X, blocks = data.x.double().numpy(), [place.double().numpy(), data.x.double().numpy()]
    for A in map(means, views_of(data)):
        blocks += [A @ X, A @ A @ X]
    return np.hstack(blocks).astype(np.float32)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(("stages", "rounds"), [(1, 10), (3, 25)])
def test_it_is_lightgbm_s_on_the_same_columns(directed, classes, stages, rounds, capfd) -> None:
    data = graph(directed=directed)
    model, inputs = setup(BoostedTreesConfig(**SMALL), data)
    y = trained_on(data.y % classes)
    weight = torch.where(y == 0, 2.0, 1.0)
    fit(model, inputs, y, stages=stages, weight=weight)
    columns, rows = columns_of(data, inputs[1]), np.flatnonzero(y >= 0)
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
    columns, rows = columns_of(data, inputs[1]), np.flatnonzero(y >= 0)
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


def test_trees_are_saved_as_text_and_damage_to_it_is_noticed() -> None:
    data = graph()
    (model, inputs), (again, _) = (setup(BoostedTreesConfig(**SMALL), data) for _ in range(2))
    fit(model, inputs, trained_on(data.y), stages=2)
    state = model.state_dict()
    assert bytes(state["_extra_state"][32:].numpy()).decode().startswith("tree\nversion=")
    again.load_state_dict(state)
    assert again(*inputs).equal(model(*inputs))
    state["_extra_state"][-9] = 120
    with pytest.raises(ValueError, match="not those that were saved"):
        again.load_state_dict(state)


def test_trees_of_version_0_2_0_are_refused_with_a_remedy(monkeypatch, tmp_path) -> None:
    data = graph()
    classifier = NodeClassifier("boosted-trees", trees=10).fit_graph(data)
    state = classifier.fitted_.model.state_dict()
    del state["_extra_state"]
    old = state | {"walk.used": torch.tensor(30), "outputs": torch.tensor(3)}
    monkeypatch.setattr(classifier.fitted_.model, "state_dict", lambda: old)
    classifier.save(tmp_path / "model")
    with pytest.raises(InputError, match=r"form of version 0\.2\.0.*: train and save it again$"):
        NodeClassifier.load(tmp_path / "model")


def test_there_are_no_more_stages_than_trees() -> None:
    data = graph()
    model, inputs = setup(BoostedTreesConfig(**SMALL), data)
    assert len(list(model.stages(inputs, data.y, torch.ones(N)))) == 3
    assert lightgbm.Booster(model_str=model._saved.decode()).num_trees() == 25 * CLASSES


def test_it_ends_when_no_leaf_can_be_divided(capfd) -> None:
    data = graph()
    model, inputs = setup(BoostedTreesConfig(leaf_nodes=30, trees=200), data)
    y = trained_on(data.y)
    assert len(list(model.stages(inputs, y, torch.ones(N)))) == 1
    shares = torch.bincount(y[y >= 0]) / int((y >= 0).sum())
    torch.testing.assert_close(model(*inputs).softmax(dim=1)[0], shares, rtol=1e-3, atol=1e-3)
    assert capfd.readouterr() == ("", "")


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


def test_it_can_be_fitted_again() -> None:
    data = graph()
    (model, inputs), (other, _) = (setup(BoostedTreesConfig(**SMALL), data) for _ in range(2))
    fit(model, inputs, trained_on(data.y.flip(0)), stages=3)
    again, anew = (fit(each, inputs, trained_on(data.y), stages=2) for each in (model, other))
    assert again(*inputs).equal(anew(*inputs))


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
