import math

import pytest
import torch

from gcnsl import InputError, synthetic
from gcnsl.datasets import with_random_split
from gcnsl.evaluation import hyperparameter_search
from gcnsl.evaluation.outcome import run_split
from gcnsl.experiments import measure
from gcnsl.experiments.beyond import Place, search_spec
from gcnsl.experiments.measure import CURVE_STEP, failed_run, search_run, time_features, train_run
from gcnsl.experiments.spec import RunSpec, as_options
from gcnsl.methods import METHODS, Method, Prepared, prepare
from gcnsl.methods.registry import space_of

from .cases import spec
from .fake_methods import fake_methods

CPU = torch.device("cpu")
QUICK = {"epochs": 3, "patience": 2, "n_anchors": 8, "n_components": 3, "hidden_channels": 4}


def graph():
    data = synthetic(n=60, h=0.3, classes=3, degree=4, features=12, seed=0, signal=0.9)
    return with_random_split(data, runs=2, seed=0)


def prepared(method: Method) -> Prepared:
    return prepare(method, graph(), seed=0, device=CPU)


def test_what_is_measured_of_gcn_sl() -> None:
    ready = prepared(METHODS["gcn-sl-cc"].with_options(**QUICK))
    first, second = (train_run(spec(run), ready) for run in range(2))
    assert first.status == second.status == "ok"
    assert first.spec == spec(0)
    assert first.metrics.keys() == {
        *("train", "val", "test", "train_nodes", "test_nodes", "epochs", "best_epoch"),
        *("homophily", "degree", "homophily_initial", "homophily_original"),
        *("homophily_featured", "degree_featured", "homophily_initial_featured", "homophily_original_featured"),
    }
    assert first.metrics["homophily_featured"] == first.metrics["homophily"], "every node has features"
    assert first.metrics["homophily_original"] == pytest.approx(0.3, abs=0.01)
    assert (first.metrics["train_nodes"], first.metrics["test_nodes"]) == (30, 12)
    assert first.metrics["epochs"] == 3
    assert first.split_hash != second.split_hash
    assert first.device.startswith("CPU (")
    assert first.version
    assert first.finished
    assert first.seconds > 0
    assert first.history == {}


@pytest.mark.parametrize("layout", [torch.Tensor.to_dense, torch.Tensor.to_sparse_csr])
def test_nodes_without_features_are_counted_apart(layout) -> None:
    data = graph()
    data.x[:20] = 0
    classes, featured = data.y.numpy(), slice(20, 60)
    data.x = layout(data.x)
    ready = prepare(METHODS["gcn-sl-cc"].with_options(**QUICK, epsilon=1.0), data, seed=0, device=CPU)
    metrics = train_run(spec(), ready).metrics
    assert metrics["degree"] >= 20 * 19 / 60, "the shift has made their rows equal"
    assert metrics["degree_featured"] < 5
    edges = data.edge_index[:, (data.edge_index >= 20).all(dim=0)].numpy()
    agree = classes[edges[0]] == classes[edges[1]]
    assert metrics["homophily_original_featured"] == pytest.approx(agree.mean(), abs=1e-6)
    assert len(set(classes[featured])) == 3


def test_a_model_that_learns_no_graph_has_no_homophily() -> None:
    methods = fake_methods()
    assert "homophily" in train_run(spec(), prepared(methods["nlgnn"])).metrics
    assert "homophily" not in train_run(spec(), prepared(methods["mlp"])).metrics
    without = METHODS["gcn-sl-cc"].with_options(**QUICK, use_reconnected=False)
    assert "homophily" not in train_run(spec(), prepared(without)).metrics


def test_another_metric_is_measured_beside_the_accuracy() -> None:
    ready = prepared(fake_methods()["mlp"])
    plain, ranked = (train_run(spec(metric=metric), ready).metrics for metric in ("accuracy", "roc-auc"))
    score = ranked.pop("test_roc_auc")
    assert ranked == plain
    outcome = run_split(ready, run=0, seed=spec().train_seed)
    assert score == pytest.approx(outcome.fitted.measure(outcome.masks["test"])["roc-auc"], abs=1e-6)


def test_a_metric_that_is_not_defined_is_none(monkeypatch) -> None:
    monkeypatch.setattr("gcnsl.methods.Fitted.measure", lambda self, mask: {"roc-auc": math.nan})
    assert train_run(spec(metric="roc-auc"), prepared(fake_methods()["mlp"])).metrics["test_roc_auc"] is None


@pytest.fixture
def search_with(tmp_path, all_methods):
    """Search for hyper-parameters of a fake method."""

    def searched(name="mlp", trials=3, seconds=None, **fixed):
        place = Place("texas", "geom-gcn")
        wanted = search_spec(name, place, seed=0, trials=trials, **fixed)
        return search_run(wanted, graph(), device=CPU, storage=tmp_path / "search.db", seconds=seconds)

    return searched


def test_a_search_tells_what_it_has_found(search_with) -> None:
    result = search_with("gcn-sl-plus", contrast=0.0, dropout=0.1)
    assert result.status == "ok"
    assert result.metrics["trials"] == 3
    assert 0 < result.metrics["validation"] <= 1
    assert result.metrics["options"].keys() == space_of("gcn-sl-plus").keys() - {"dropout", "contrast"}
    assert (result.seconds > 0, result.device[:3]) == (True, "CPU")


def test_a_search_without_time_goes_on_later(search_with, tmp_path, monkeypatch) -> None:
    assert search_with(trials=30, seconds=1e-3) is None
    assert list(tmp_path.iterdir()) == [tmp_path / "search.db"]
    trained = []
    run = hyperparameter_search.run_split
    monkeypatch.setattr(hyperparameter_search, "run_split", lambda *a, **k: trained.append(a) or run(*a, **k))
    assert search_with(trials=2).metrics["trials"] == 2
    assert len(trained) <= 4


def test_a_search_counts_the_trials_that_fit_into_memory(search_with, monkeypatch) -> None:
    run, calls = hyperparameter_search.run_split, iter(range(100))

    def once(*arguments, **options):
        if next(calls) >= 2:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return run(*arguments, **options)

    monkeypatch.setattr(hyperparameter_search, "run_split", once)
    assert search_with(trials=3, seconds=1000.0).metrics["trials"] == 1


def test_a_search_in_which_nothing_works_fails(search_with, monkeypatch) -> None:
    def out_of_memory(*_, **__):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(hyperparameter_search, "run_split", out_of_memory)
    with pytest.raises(InputError, match="no trial was finished"):
        search_with(trials=2, seconds=100.0)
    assert search_with(trials=2, seconds=1e-9) is None


def test_curves() -> None:
    result = train_run(spec(curves=True), prepared(fake_methods()["mlp"]))
    assert result.history.keys() == {"train", "val", "test"}
    assert {len(curve) for curve in result.history.values()} == {-(-3 // CURVE_STEP)}


def test_a_failure_is_one_line() -> None:
    assert failed_run(spec(), ValueError("no\nsuch   thing"), device=CPU).error == "ValueError: no such thing"
    assert len(failed_run(spec(), "x" * 1000, device=CPU).error) == 500


@pytest.mark.parametrize("name", ["sc", "esc", "esc-anch"])
def test_times_of_spectral_features(name, monkeypatch) -> None:
    threads = []
    made = measure.SpectralFeatures.fit_transform

    def watched(self, x):
        threads.append(torch.get_num_threads())
        return made(self, x)

    monkeypatch.setattr(measure.SpectralFeatures, "fit_transform", watched)
    torch.set_num_threads(2)
    timed = RunSpec(name, "texas", "none", 0, 0, as_options({"n_components": 3, "n_anchors": 8}), task="features")
    result = time_features(timed, graph(), device=CPU)
    assert threads == [1, 1]
    assert torch.get_num_threads() == 2
    torch.set_num_threads(1)
    assert result.status == "ok"
    assert 0 < result.metrics["seconds"] < 5
