import pickle

from gcnsl import synthetic
from gcnsl.datasets import with_random_split
from gcnsl.errors import TrainingDiverged
from gcnsl.evaluation.contest import Contest, Turn

from .fake_methods import FakeConfig, fake

DATA = with_random_split(synthetic(n=60, h=0.8, classes=3, degree=4, features=12, seed=0, signal=0.9), runs=2)


def test_a_copy_reaches_the_same_and_prepares_its_own_inputs(monkeypatch) -> None:
    prepared, inputs = [], FakeConfig.inputs

    def counted(self, graph, precomputed, *, seed):
        prepared.append(seed)
        return inputs(self, graph, precomputed, seed=seed)

    monkeypatch.setattr(FakeConfig, "inputs", counted)
    contest = Contest(DATA, {"mlp": fake("mlp")}, seed=3, device="cpu")
    here = [contest(Turn("mlp", run)) for run in range(3)]
    assert prepared == [3], "once for all runs"
    copy = pickle.loads(pickle.dumps(contest))
    there = [copy(Turn("mlp", run)) for run in range(3)]
    assert prepared == [3, 3]
    assert [reached.scores for reached in here] == [reached.scores for reached in there]
    assert here[0].epochs == 3
    assert here[0].options == fake("mlp").options()
    assert here[2].scores != here[0].scores, "the same split with another seed"


def test_what_is_kept_is_not_sent() -> None:
    contest = Contest(DATA, {"mlp": fake("mlp")}, seed=0, device="cpu")
    before = len(pickle.dumps(contest))
    contest(Turn("mlp", 0))
    assert len(pickle.dumps(contest)) == before


def test_divergence_is_an_outcome_and_epochs_are_told() -> None:
    contest, told = Contest(DATA, {"gat": fake("gat", fails=True), "mlp": fake("mlp")}, seed=0, device="cpu"), []
    assert isinstance(contest(Turn("gat", 0)), TrainingDiverged)
    contest(Turn("mlp", 0), lambda epoch: told.append(epoch.number))
    assert told == [1, 2, 3]
