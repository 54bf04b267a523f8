import numpy as np
import pytest
import torch

from gcnsl import InputError, NodeClassifier, synthetic
from gcnsl.datasets import with_random_split
from gcnsl.errors import Interrupted
from gcnsl.estimator.explanation import explain
from gcnsl.methods import Fitted
from gcnsl.selection import Blend

from ..selection.cases import QUICK, make_quick

OPTIONS = {"quality": "fast", "minutes": 5}


@pytest.fixture(autouse=True)
def quick(monkeypatch, single_thread):
    make_quick(monkeypatch)


@pytest.fixture
def data():
    return with_random_split(
        synthetic(n=90, h=0.8, classes=3, degree=4, features=8, seed=0, signal=0.9), seed=0, runs=2
    )


def test_it_is_a_classifier_like_any_other(data, tmp_path) -> None:
    y = np.where(np.arange(90) < 20, None, np.array(["x", "y", "z"], dtype=object)[data.y.numpy()])
    classifier = NodeClassifier("auto", **OPTIONS, checkpoint=tmp_path / "journal")
    classifier.fit(data.x, y, edge_index=data.edge_index)
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


@pytest.mark.parametrize("options", [{"single": True}, {"distil": "mlp"}])
def test_one_model_in_place_of_the_ensemble(data, options, tmp_path) -> None:
    classifier = NodeClassifier("auto", **OPTIONS, **options).fit_graph(data)
    assert isinstance(classifier.fitted_, Fitted)
    classifier.save(tmp_path / "model")
    again = NodeClassifier.load(tmp_path / "model")
    assert again.method in ({"mlp"} if "distil" in options else {candidate.method for candidate in QUICK})
    assert (again.predict_proba() == classifier.predict_proba()).all()
    assert len(again.leaderboard_) == len(classifier.leaderboard_)


def test_an_explanation_says_whose_reasons_it_gives(data) -> None:
    classifier = NodeClassifier("auto", **OPTIONS).fit_graph(data)
    explanation = explain(classifier, 5)
    assert any(candidate.name in explanation.method for candidate in QUICK)
    assert list(explanation.probabilities.values()) == pytest.approx(sorted(classifier.predict_proba()[5])[::-1])


def test_an_interruption_leaves_a_classifier(data) -> None:
    def interrupt(progress) -> None:
        if progress.fits == 4:
            raise KeyboardInterrupt

    classifier = NodeClassifier("auto", **OPTIONS, on_epoch=interrupt)
    with pytest.raises(Interrupted, match="after 4 models"):
        classifier.fit_graph(data)
    assert classifier.history_.stopped == "interrupted"
    assert classifier.predict().shape == (90,)


def test_options_are_those_of_the_selection(data) -> None:
    with pytest.raises(InputError, match="no such option"):
        NodeClassifier("auto", epochs=3).fit_graph(data)
    with pytest.raises(InputError, match="no such option"):
        NodeClassifier("auto").set_params(epochs=3)
    assert NodeClassifier("auto").set_params(quality="best").get_params()["quality"] == "best"
    with pytest.raises(InputError, match="minutes"):
        NodeClassifier("auto", minutes=0).fit_graph(data)
