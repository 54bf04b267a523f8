import itertools
import os
import signal
from dataclasses import replace

import numpy as np
import pytest
import torch

from gcnsl.auto import AutoSettings, selection
from gcnsl.auto import race as race_module
from gcnsl.auto.candidates import Candidate
from gcnsl.auto.ensemble import Weighted, tempered
from gcnsl.auto.journal import Journal, SavedModels
from gcnsl.auto.race import LARGEST_END, TimedRace
from gcnsl.auto.selection import choose, leaderboard, majority_probabilities, select
from gcnsl.errors import Interrupted
from gcnsl.runs import jobs, processes
from gcnsl.runs.jobs import Trainer
from gcnsl.training import METRICS, History

from ..runs.fake_executor import FakeExecutor
from .cases import QUICK, fake_fit, fitted, make_quick, small_problem

FAST = AutoSettings(quality="fast")


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    make_quick(monkeypatch)


def test_all_is_tried_and_the_best_is_chosen(tmp_path) -> None:
    problem, news = small_problem(quality="fast"), []
    selected = select(problem, FAST, problem.graph, minutes=5, checkpoint=tmp_path / "j", on_progress=news.append)
    table = selected.leaderboard
    assert set(table["model"]) >= {candidate.name for candidate in QUICK} | {"majority class"}
    assert len(list((tmp_path / "j").glob("*.safetensors"))) == 4 * len(QUICK)
    assert selected.blend.history.stopped == "complete"
    assert np.allclose(selected.blend.logits().exp().numpy(), selected.probabilities["ensemble"], atol=1e-5)
    assert news[-1].fits == 4 * len(QUICK) - 1
    assert news[-1].best in {candidate.name for candidate in QUICK}
    assert news[0].best is None
    assert news[0].seconds_left <= 300


def test_it_goes_on_where_it_was_killed(tmp_path, monkeypatch) -> None:
    problem, settings = small_problem(quality="fast"), FAST
    once = select(problem, settings, problem.graph, minutes=5, checkpoint=tmp_path / "once")
    write, count = Trainer.__call__, iter(range(100))

    def killed_after_seven(fitter, job):
        if next(count) == 7:
            raise SystemExit("killed")
        return write(fitter, job)

    monkeypatch.setattr(Trainer, "__call__", killed_after_seven)
    with pytest.raises(SystemExit):
        select(problem, settings, problem.graph, minutes=5, checkpoint=tmp_path / "killed")
    assert len(list((tmp_path / "killed").iterdir())) == 7
    continued = select(problem, settings, problem.graph, minutes=5, checkpoint=tmp_path / "killed")
    assert len(list((tmp_path / "killed").iterdir())) == 16
    assert (continued.blend.logits() == once.blend.logits()).all()


def test_the_budget_is_spent_only_once(tmp_path) -> None:
    problem = small_problem(quality="fast")
    select(problem, FAST, problem.graph, minutes=5, checkpoint=tmp_path / "j")
    before = sorted((tmp_path / "j").iterdir())
    (tmp_path / "j" / before[0].name).unlink()
    again = select(problem, FAST, problem.graph, minutes=1e-6, checkpoint=tmp_path / "j")
    assert len(list((tmp_path / "j").iterdir())) == len(before) - 1, "there is no time left for the missing one"
    assert again.blend.history.stopped == "minutes"


def test_one_model_is_made_however_short_the_time() -> None:
    problem = small_problem(quality="fast")
    selected = select(problem, FAST, problem.graph, minutes=1e-6)
    assert [member.name for member in selected.blend.members] == ["label propagation"]
    assert "skipped: no time left" in set(selected.leaderboard["verdict"])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_leaves_the_best_so_far(number, tmp_path) -> None:
    problem = small_problem(quality="fast")

    def interrupt(progress) -> None:
        if progress.fits == 5:
            os.kill(os.getpid(), number)

    with pytest.raises(Interrupted, match="after 5 models") as caught:
        select(problem, FAST, problem.graph, minutes=5, checkpoint=tmp_path / "j", on_progress=interrupt)
    assert caught.value.so_far.blend.history.stopped == "interrupted"
    assert len(list((tmp_path / "j").iterdir())) == 5
    with pytest.raises(Interrupted, match="before a model was finished") as caught:
        select(problem, FAST, problem.graph, minutes=5, on_progress=lambda _: os.kill(os.getpid(), number))
    assert caught.value.so_far is None


MLP = next(candidate for candidate in QUICK if candidate.method == "mlp")


def failing_fit(monkeypatch) -> None:
    fit = jobs.fit

    def fails(prepared, **options):
        if prepared.method.name == "mlp":
            raise KeyError("a mistake")
        return fit(prepared, **options)

    monkeypatch.setattr(jobs, "fit", fails)


def unreadable_file(monkeypatch) -> None:
    write = Journal.write

    def fails(journal, fit, model):
        if fit.candidate == MLP:
            raise ValueError("cut off")
        write(journal, fit, model)

    monkeypatch.setattr(Journal, "write", fails)


def useless_probabilities(monkeypatch) -> None:
    add = TimedRace.add

    def fails(race, fit):
        add(race, replace(fit, probabilities=fit.probabilities[:3]) if fit.candidate == MLP else fit)

    monkeypatch.setattr(TimedRace, "add", fails)


@pytest.mark.parametrize(
    ("fails", "why"),
    [
        (failing_fit, "failed: KeyError: 'a mistake'"),
        (unreadable_file, "failed: ValueError: cut off"),
        (useless_probabilities, "failed: IndexError"),
    ],
)
def test_whatever_happens_to_one_contender_the_others_go_on(fails, why, monkeypatch, caplog) -> None:
    fails(monkeypatch)
    problem = small_problem(quality="fast")
    with caplog.at_level("DEBUG", "gcnsl"):
        selected = select(problem, FAST, problem.graph, minutes=5)
    table = selected.leaderboard.set_index("model")
    assert table.loc["MLP", "verdict"].startswith(why)
    assert table.loc["MLP", ["validation", "first_fold"]].isna().all()
    assert table["first_fold"].notna().sum() >= 4
    assert selected.blend.history.stopped == "complete"
    assert "Traceback" in caplog.text


def test_a_journal_with_a_useless_fit_is_no_end(tmp_path) -> None:
    problem = small_problem(quality="fast")
    select(problem, FAST, problem.graph, minutes=5, checkpoint=tmp_path / "j")
    journal = Journal(tmp_path / "j", problem.identity)
    fits = [
        replace(fit, probabilities=fit.probabilities[:3]) if fit.candidate == MLP else fit for fit in journal.read()
    ]
    it = TimedRace(problem, QUICK, trials=0, seconds=10, processes=1, fits=fits)
    assert it.contenders[MLP].failure.startswith("failed: IndexError")
    assert len(it.ranking()) == len(QUICK) - 1


@pytest.mark.slow
def test_killed_workers_cost_nothing_but_time(monkeypatch) -> None:
    """More of them than may fail in a row; each is killed when it has begun, or is idle."""
    monkeypatch.setattr(processes, "MOST_FAILED", 2)
    problem, killed = small_problem(quality="fast"), []

    def kill(progress) -> None:
        started = [process for process in executor._workers if process.has_started]
        if len(killed) < 4 and started and progress.fits > len(killed):
            started[0].process.kill()
            killed.append(started[0])

    with processes.Processes(2) as executor:
        selected = select(problem, FAST, problem.graph, minutes=5, executor=executor, on_progress=kill)
    assert len(killed) == 4
    assert selected.blend.history.stopped == "complete"
    verdicts = selected.leaderboard["verdict"]
    assert not verdicts.str.contains("failed").all()
    lost = verdicts[verdicts.str.contains("failed")]
    assert lost.str.endswith("failed: its process was killed twice, perhaps for lack of memory").all()


def test_an_interruption_while_the_ensemble_is_chosen_leaves_it(monkeypatch) -> None:
    choose = selection.choose

    def pressed(*arguments, **options):
        os.kill(os.getpid(), signal.SIGINT)
        return choose(*arguments, **options)

    monkeypatch.setattr(selection, "choose", pressed)
    problem = small_problem(quality="fast")
    with pytest.raises(Interrupted, match="after 16 models") as caught:
        select(problem, FAST, problem.graph, minutes=5)
    assert caught.value.so_far.blend.history.stopped == "interrupted"


def test_others_can_do_the_work_and_this_process_keeps_the_journal(tmp_path) -> None:
    problem = small_problem(quality="fast")
    here = select(problem, FAST, problem.graph, minutes=5, checkpoint=tmp_path / "here")
    executor = FakeExecutor(slots=3, seed=1)
    there = select(problem, FAST, problem.graph, minutes=5, checkpoint=tmp_path / "there", executor=executor)
    files = [sorted(path.name for path in (tmp_path / name).iterdir()) for name in ("here", "there")]
    assert files[0] == files[1]
    assert executor.most_under_way == 3
    assert executor.calls_sent == 1
    assert torch.equal(here.blend.logits(), there.blend.logits())


@pytest.mark.parametrize("least", [0.0, 20.0])
def test_training_ends_in_time_for_the_end(least, monkeypatch) -> None:
    now = itertools.count(step=2)  # the clock is read several times for each fit
    next_job, began = TimedRace.next_job, []

    def clocked(race, elapsed):
        job = next_job(race, elapsed)
        began.extend([elapsed] if job else [])
        return job

    def slow(race, fit):
        add(race, replace(fit, least_seconds=least))

    add = TimedRace.add
    monkeypatch.setattr(selection, "monotonic", lambda: next(now))
    monkeypatch.setattr(TimedRace, "next_job", clocked)
    monkeypatch.setattr(TimedRace, "add", slow)
    problem = small_problem(quality="fast")
    selected = select(problem, FAST, problem.graph, minutes=1)
    kept = min(2 * least, LARGEST_END * 60)
    assert max(began) < 60 - max(kept, 2)
    assert selected.blend.history.seconds <= 66 - kept, "which leaves the time for the end"


@pytest.fixture
def race(tmp_path) -> tuple[TimedRace, Journal]:
    """The cheap candidates have completed three folds, the others two."""
    problem = small_problem()
    journal = Journal(tmp_path, problem.identity)
    for candidate, folds in zip(QUICK, (3, 3, 2, 2), strict=True):
        for fold in range(folds):
            fitted(problem, journal, candidate, fold)
    it = TimedRace(problem, QUICK, trials=0, seconds=10, processes=1, fits=journal.read())
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

    monkeypatch.setattr(it, "problem", replace(it.problem, metric="log-loss"))
    monkeypatch.setattr(selection, "best_temperature", lambda *_: 2.0)
    monkeypatch.setattr(race_module, "weigh_models", two)
    selected = choose(it, journal, it.problem.graph, History(), single=False)
    problem, level = it.problem, it.level
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
    it = TimedRace(problem, [*candidates], trials=0, seconds=10, processes=1, fits=fits)
    level = it.level
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
        (2000, "accuracy on 1,591 of 1,988 training and validation nodes, each predicted by models that had not"),
    ],
)
def test_what_has_chosen_is_said(n, told) -> None:
    problem = small_problem(n=n)
    candidates = [Candidate(name, name) for name in ("gcn", "mlp", "sage")]
    fits = [fake_fit(problem, c, fold, skill=0.5) for fold in range(5) for c in candidates]
    it = TimedRace(problem, candidates, trials=0, seconds=10, processes=1, fits=fits)
    assert str(selection.chosen_by(it)).startswith(told)


@pytest.mark.parametrize("how", ["no file", "damaged file", "no memory"])
def test_a_member_that_can_not_be_restored_is_left_out(race, monkeypatch, how) -> None:
    it, journal = race
    before = choose(it, journal, it.problem.graph, History(), single=False)
    lost = before.blend.members[0].name
    candidate = next(candidate for candidate in QUICK if candidate.name == lost)
    restore = SavedModels.__getitem__

    def fail(fits, index):
        if fits.saved[0].plain["method"] == candidate.method:
            raise MemoryError
        return restore(fits, index)

    if how == "no file":
        (journal.path / f"{candidate.key}-1.safetensors").unlink()
    elif how == "damaged file":
        (journal.path / f"{candidate.key}-1.safetensors").write_bytes(b"not a model")
    else:
        monkeypatch.setattr(SavedModels, "__getitem__", fail)
    after = choose(it, journal, it.problem.graph, History(), single=False)
    assert lost not in [member.name for member in after.blend.members]
    assert lost not in after.probabilities
    row = after.leaderboard.set_index("model").loc[lost]
    assert row["verdict"].startswith("failed: it can't be restored (")
    assert np.isnan(row["validation"])
    assert after.blend.logits().isfinite().all()
