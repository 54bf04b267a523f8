from dataclasses import replace

import numpy as np
import pytest

from gcnsl.selection import choice
from gcnsl.selection.choice import choose
from gcnsl.selection.ensemble import tempered
from gcnsl.selection.fold_fit import FoldJob
from gcnsl.selection.journal import Journal
from gcnsl.selection.judge import Judge
from gcnsl.selection.proposals import Proposals
from gcnsl.selection.race import Race
from gcnsl.training import METRICS, History

from .cases import QUICK, small_problem, written_fit


@pytest.fixture
def race(tmp_path) -> tuple[Race, Journal]:
    """The cheap candidates have completed three folds, the others two."""
    problem = small_problem()
    journal = Journal(tmp_path, problem.identity)
    for candidate, folds in zip(QUICK, (3, 3, 2, 2), strict=True):
        for fold in range(folds):
            written_fit(problem, journal, FoldJob(candidate, fold, 60.0, 60.0, 0.0))
    it = Race(problem, QUICK, Proposals(0, seed=0), seconds=10, processes=1, fits=journal.read())
    return it, journal


def test_members_have_all_their_folds(race) -> None:
    it, journal = race
    selected = choose(it, journal, it.problem.graph, History(), single=False)
    levels = {contender.candidate.name: contender.level for contender in it.contenders.values()}
    for member in selected.blend.members:
        assert len(member.fits) == levels[member.name]
    weights = [member.weight for member in selected.blend.members]
    assert weights == sorted(weights, reverse=True)
    assert sum(weights) == pytest.approx(1)
    assert set(selected.probabilities) == {*levels, "ensemble", "majority class"}
    ensemble = selected.probabilities["ensemble"]
    assert selected.blend.logits().softmax(dim=1).numpy() == pytest.approx(ensemble, abs=1e-6)
    by_members = replace(selected.blend, known=None).logits().softmax(dim=1).numpy()
    assert by_members == pytest.approx(ensemble, abs=1e-4), "what is known is what the members say"


def test_three_good_ones_say_on_how_many_folds_all_are_compared(race, monkeypatch) -> None:
    it, journal = race
    seen = []

    def first_alone(probabilities, *_, **__):
        seen.append(probabilities.shape)
        return np.eye(len(probabilities))[0]

    monkeypatch.setattr(choice, "ensemble_weights", first_alone)
    choose(it, journal, it.problem.graph, History(), single=False)
    level = min(contender.level for contender in it.ranking()[:3])
    pool = [contender for contender in it.contenders.values() if contender.level >= level]
    assert seen == [(len(pool), int(it.problem.validated(level).sum()), 3)]


def test_fewer_folds_do_if_they_have_nodes_enough(race, monkeypatch) -> None:
    it, _ = race
    assert choice._common_level(it) > 1
    monkeypatch.setattr(choice, "ENOUGH_NODES", 5)
    assert choice._common_level(it) == 1


def test_a_single_one_has_one_model(race) -> None:
    it, journal = race
    selected = choose(it, journal, it.problem.graph, History(), single=True)
    assert [len(member.fits) for member in selected.blend.members] == [1]
    (best,) = [each for each in it.contenders.values() if each.candidate.name == selected.blend.members[0].name]
    assert len(best.fits) > 1
    assert (selected.probabilities[best.candidate.name] == best.fits[0].probabilities).all(), "those of the kept model"


def test_the_ensemble_is_validated_with_the_temperature_that_it_predicts_with(race, monkeypatch) -> None:
    it, journal = race
    monkeypatch.setattr(it, "judge", Judge("log-loss"))
    monkeypatch.setattr(choice, "best_temperature", lambda *_: 2.0)
    monkeypatch.setattr(choice, "ensemble_weights", lambda stacked, *_, **__: np.eye(len(stacked))[:2].mean(axis=0))
    selected = choose(it, journal, it.problem.graph, History(), single=False)
    problem, level = it.problem, choice._common_level(it)
    pool = {contender.candidate.name: contender for contender in it.contenders.values()}
    given = [pool[member.name].out_of_fold(problem, level) for member in selected.blend.members]
    together = tempered((tempered(given[0], 2.0) + tempered(given[1], 2.0)) / 2, 2.0)
    expected = METRICS["log-loss"](together, problem.graph.y[problem.validated(level)].numpy())
    board = selected.leaderboard.set_index("model")
    assert board.loc["ensemble", "validation"] == pytest.approx(expected)
