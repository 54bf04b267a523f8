import numpy as np
import pytest
import torch

from gcnsl import NodeClassifier, from_arrays, synthetic
from gcnsl.auto import Blend, journal, race
from gcnsl.auto.ensemble import Weighted
from gcnsl.datasets import with_random_split
from gcnsl.errors import Interrupted
from gcnsl.estimator import best_for_graph
from gcnsl.evaluation import measure_classifier
from gcnsl.methods import Fitted, Prepared, prepare

from ..auto.cases import QUICK, make_quick

OPTIONS = {"quality": "fast", "minutes": 5}
grown_inputs = Prepared.grown_inputs


@pytest.fixture(autouse=True)
def quick(monkeypatch, single_thread):
    make_quick(monkeypatch)


@pytest.fixture
def ensemble(monkeypatch):
    """The best two make an ensemble, whether or not it is better."""

    def two(probabilities, *_, **__):
        weights = np.array([0.6, 0.4, *[0.0] * (len(probabilities) - 2)])
        return Weighted(weights, np.tensordot(weights, probabilities, 1))

    monkeypatch.setattr(race, "weigh_models", two)


@pytest.fixture
def data():
    return with_random_split(
        synthetic(n=90, h=0.8, classes=3, degree=4, features=8, seed=0, signal=0.9), seed=0, runs=2
    )


def test_it_is_a_classifier_like_any_other(data, tmp_path) -> None:
    y = np.where(np.arange(90) < 20, None, np.array(["x", "y", "z"], dtype=object)[data.y.numpy()])
    classifier = NodeClassifier(**OPTIONS, checkpoint=tmp_path / "journal").fit(data.x, y, edge_index=data.edge_index)
    assert classifier.method == "auto", "as on the command line"
    assert classifier.classes_.tolist() == ["x", "y", "z"]
    assert isinstance(classifier.fitted_, Blend)
    assert set(classifier.leaderboard_["model"]) >= {candidate.name for candidate in QUICK}
    assert classifier.leaderboard_["test"].isna().all(), "there are no test nodes"
    assert (tmp_path / "journal").is_dir()
    classifier.save(tmp_path / "model")
    assert not (tmp_path / "journal").exists()
    again = NodeClassifier.load(tmp_path / "model")
    assert (again.predict_proba() == classifier.predict_proba()).all()
    assert again.get_params()["quality"] == "fast"
    assert again.leaderboard_.equals(classifier.leaderboard_)
    grown = torch.cat([data.edge_index, torch.tensor([[90], [0]])], dim=1)
    assert again.predict(torch.cat([data.x, data.x[:1]]), edge_index=grown).shape == (91,)
    assert again.score(None, y) > 0.5


def test_test_nodes_are_scored_in_the_leaderboard_and_change_nothing(data) -> None:
    classifier = NodeClassifier("auto", **OPTIONS).fit_graph(data, run=1)
    rows, test = classifier.leaderboard_.set_index("model"), data.test_mask[:, 1].numpy()
    name = "ensemble" if "ensemble" in rows.index else classifier.fitted_.members[0].name
    accuracy = (classifier.predict_proba().argmax(axis=1) == data.y.numpy())[test].mean()
    assert rows.loc[name, "test"] == pytest.approx(accuracy)
    other = data.clone()
    other.y[torch.from_numpy(test)] = 0
    again = NodeClassifier("auto", **OPTIONS).fit_graph(other, run=1)
    assert (again.predict_proba() == classifier.predict_proba()).all()
    assert NodeClassifier("auto", **OPTIONS).fit_graph(data, all_labels=True).leaderboard_["test"].isna().all()


@pytest.mark.usefixtures("ensemble")
def test_what_is_known_is_not_prepared_again(data, monkeypatch, tmp_path) -> None:
    classifier = NodeClassifier("auto", **OPTIONS).fit_graph(data)
    classifier.save(tmp_path / "model")
    prepared, grown = [], []
    monkeypatch.setattr(journal, "prepare", lambda *a, **k: prepared.append(a[0]) or prepare(*a, **k))
    monkeypatch.setattr(Prepared, "grown_inputs", lambda *a: grown.append(a[0].method) or grown_inputs(*a))
    again = NodeClassifier.load(tmp_path / "model")
    assert (again.predict_proba() == classifier.predict_proba()).all()
    assert (again.predict_proba_graph(data) == classifier.predict_proba()).all()
    assert measure_classifier(again, data).metrics == measure_classifier(classifier, data).metrics
    again.save(tmp_path / "copy")
    assert (prepared, grown) == ([], []), "the ensemble's predictions are stored with it"
    members = again.fitted_.members
    assert len(members) > 1
    assert max(len(member.fits) for member in members) > 1
    more = from_arrays(torch.cat([data.x, data.x[:1]]), torch.cat([data.edge_index, torch.tensor([[90], [0]])], dim=1))
    again.predict_proba_graph(more)
    found = again.predict_proba_graph(more)
    assert len(prepared) == len(members), "once each, for all folds"
    assert len(grown) == 2 * len(members)
    assert again.fitted_.temperature == classifier.fitted_.temperature != 1
    assert found == pytest.approx(classifier.predict_proba_graph(more), abs=1e-6)


@pytest.mark.parametrize("options", [{"single": True}, {"distil": "mlp"}])
def test_one_model_in_place_of_the_ensemble(data, options, tmp_path) -> None:
    classifier = NodeClassifier("auto", **OPTIONS, **options).fit_graph(data)
    assert isinstance(classifier.fitted_, Fitted)
    classifier.save(tmp_path / "model")
    again = NodeClassifier.load(tmp_path / "model")
    assert again.method in ({"mlp"} if "distil" in options else {candidate.method for candidate in QUICK})
    assert (again.predict_proba() == classifier.predict_proba()).all()
    assert again.leaderboard_.equals(classifier.leaderboard_)
    assert again.chosen_by_ == classifier.chosen_by_
    row, test = again.leaderboard_.iloc[0], data.test_mask[:, 0].numpy()
    right = again.predict_proba().argmax(axis=1) == data.y.numpy()
    assert row["test"] == pytest.approx(right[test].mean()), "the first row is what is kept"
    assert row["first_fold"] == pytest.approx(right[again.val_mask_].mean())
    assert (again.train_mask_ | again.val_mask_ == (data.train_mask | data.val_mask)[:, 0].numpy()).all()
    assert again.history_.seconds > 0.1, "the time of the whole selection"


@pytest.mark.usefixtures("ensemble")
@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
def test_if_the_ensemble_can_not_be_distilled_it_is_kept(data, monkeypatch, tmp_path, error) -> None:
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(best_for_graph, "distil", fail)
    classifier = NodeClassifier("auto", **OPTIONS, distil="mlp", checkpoint=tmp_path / "journal")
    if error is MemoryError:
        with pytest.warns(UserWarning, match="mlp could not learn from the ensemble, which is kept instead: not enou"):
            classifier.fit_graph(data)
    else:
        with pytest.raises(Interrupted, match="before the ensemble was distilled"):
            classifier.fit_graph(data)
    assert isinstance(classifier.fitted_, Blend)
    assert classifier.leaderboard_["model"].iloc[0] == "ensemble"
    classifier.save(tmp_path / "model")
    assert (tmp_path / "journal").is_dir() == (error is KeyboardInterrupt), "the same call goes on from there"
