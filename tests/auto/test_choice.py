from dataclasses import replace

import numpy as np
import pytest
import torch

from gcnsl.auto import choice
from gcnsl.auto.candidates import Candidate
from gcnsl.auto.choice import choose
from gcnsl.auto.ensemble import Weighted, tempered
from gcnsl.auto.fold_fit import FoldJob
from gcnsl.auto.journal import Journal
from gcnsl.auto.judge import Judge
from gcnsl.auto.leaderboard import leaderboard, majority_probabilities
from gcnsl.auto.proposals import Proposals
from gcnsl.auto.race import Race
from gcnsl.auto.stored_member import StoredFits
from gcnsl.errors import InputError
from gcnsl.training import METRICS, History

from .cases import QUICK, fake_fit, small_problem, written_fit


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
        return Weighted(np.eye(len(probabilities))[0], probabilities[0])

    monkeypatch.setattr(choice, "weigh_models", first_alone)
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

    def two(stacked, *_, **__):
        return Weighted(np.eye(len(stacked))[:2].mean(axis=0), stacked[:2].mean(axis=0))

    monkeypatch.setattr(it, "judge", Judge("log-loss"))
    monkeypatch.setattr(choice, "best_temperature", lambda *_: 2.0)
    monkeypatch.setattr(choice, "weigh_models", two)
    selected = choose(it, journal, it.problem.graph, History(), single=False)
    problem, level = it.problem, choice._common_level(it)
    pool = {contender.candidate.name: contender for contender in it.contenders.values()}
    given = [it.out_of_fold(pool[member.name], level) for member in selected.blend.members]
    together = tempered((given[0] + given[1]) / 2, 2.0)
    validated = problem.validated(level)
    expected = METRICS["log-loss"](together, problem.graph.y[validated].numpy())
    board = selected.leaderboard.set_index("model")
    assert board.loc["ensemble", "validation"] == pytest.approx(expected)
    judged = selected.blend.out_of_fold
    assert torch.equal(judged.nodes, validated.nonzero().flatten())
    assert judged.probabilities.numpy() == pytest.approx(together, abs=1e-6)


def value(problem, probabilities, nodes) -> float:
    return METRICS[problem.metric](probabilities[nodes.numpy()], problem.graph.y[nodes].numpy())


@pytest.mark.parametrize("metric", ["accuracy", "log-loss"])
def test_every_number_of_a_column_is_on_the_same_nodes(metric, tmp_path) -> None:
    """Contenders have come differently far; what they show is measured anew, by what each of their models says."""
    problem = small_problem(n=400, metric=metric)
    candidates = {Candidate(name, name): level for name, level in {"gcn": 5, "mlp": 3, "sage": 3, "linkx": 1}.items()}
    skills = dict(zip(candidates, (0.8, 0.75, 0.7, 0.6), strict=True))
    fits = [
        fake_fit(problem, c, fold, skill=skills[c]) for fold in range(5) for c in candidates if fold < candidates[c]
    ]
    it = Race(problem, [*candidates], Proposals(0, seed=0), seconds=10, processes=1, fits=fits)
    level = choice._common_level(it)
    assert level == 3
    weights = {it.contenders[c]: share for c, share in zip(candidates, (0.6, 0.4), strict=False)}
    together = np.full((int(problem.validated(3).sum()), 3), 1 / 3)
    table = leaderboard(it, level, weights, together).set_index("model")
    everywhere = {"majority class": majority_probabilities(problem, 400), "ensemble": np.full((400, 3), 1 / 3)}
    for candidate in candidates:
        folds = [fit.probabilities for fit in it.contenders[candidate].fits]
        own = np.full((400, 3), np.nan)
        for fold, probabilities in enumerate(folds):
            own[(problem.fold == fold).numpy()] = probabilities[(problem.fold == fold).numpy()]
        everywhere[candidate.name] = own
    for name, probabilities in everywhere.items():
        for column, nodes in {"validation": problem.validated(3), "first_fold": problem.validated(1)}.items():
            found = table.loc[name, column]
            if name == "linkx" and column == "validation":
                assert np.isnan(found)
            elif metric == "accuracy":
                assert found == pytest.approx(value(problem, probabilities, nodes)), (name, column)
            else:
                assert np.isfinite(found)
    shown = table["validation"].drop("ensemble").dropna().map(METRICS[metric].gain)
    assert shown.is_monotonic_decreasing
    assert table.index[-1] == "linkx"


@pytest.mark.parametrize(
    ("n", "told"),
    [
        (60, "log-loss on all 48 training and validation nodes, each predicted by models that had not learned from it"),
        (2000, "accuracy on 1,194 of 1,988 training and validation nodes, each predicted by models that had not"),
    ],
)
def test_what_has_chosen_is_said(n, told) -> None:
    problem = small_problem(n=n)
    candidates = [Candidate(name, name) for name in ("gcn", "mlp", "sage")]
    fits = [fake_fit(problem, c, fold, skill=0.5) for fold in range(5) for c in candidates]
    it = Race(problem, candidates, Proposals(0, seed=0), seconds=10, processes=1, fits=fits)
    assert str(choice._chosen_by(it, choice._common_level(it))).startswith(told)


def test_kept_validation_nodes_choose(tmp_path) -> None:
    problem = small_problem(n=60, keep_validation=True, metric="roc-auc")
    it = Race(
        problem, QUICK, Proposals(0, seed=0), seconds=10, processes=1, fits=[fake_fit(problem, QUICK[0], 0, skill=1)]
    )
    assert str(choice._chosen_by(it, 1)) == "roc-auc on 12 validation nodes, which no model has learned from"


@pytest.mark.parametrize("how", ["no file", "damaged file", "no memory"])
def test_a_member_that_can_not_be_restored_is_left_out(race, monkeypatch, how) -> None:
    it, journal = race
    before = choose(it, journal, it.problem.graph, History(), single=False)
    lost = before.blend.members[0].name
    candidate = next(candidate for candidate in QUICK if candidate.name == lost)
    restore = StoredFits.__getitem__

    def fail(fits, index):
        if fits.stored[0].plain["method"] == candidate.method:
            raise MemoryError
        return restore(fits, index)

    if how == "no file":
        (journal.path / f"{candidate.key}-1.safetensors").unlink()
    elif how == "damaged file":
        (journal.path / f"{candidate.key}-1.safetensors").write_bytes(b"not a model")
    else:
        monkeypatch.setattr(StoredFits, "__getitem__", fail)
    after = choose(it, journal, it.problem.graph, History(), single=False)
    assert lost not in [member.name for member in after.blend.members]
    assert lost not in after.probabilities
    row = after.leaderboard.set_index("model").loc[lost]
    assert row["verdict"].startswith("failed: it can't be restored (")
    assert np.isnan(row["validation"])
    assert after.blend.logits().isfinite().all()


def test_if_none_can_be_restored_it_says_why(race) -> None:
    it, journal = race
    for file in journal.path.glob("*.safetensors"):
        file.unlink()
    with pytest.raises(InputError, match=r"no model could be trained on this graph.*it can't be restored"):
        choose(it, journal, it.problem.graph, History(), single=False)
