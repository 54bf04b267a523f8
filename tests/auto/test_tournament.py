import itertools
import os
import signal
from dataclasses import replace

import numpy as np
import pytest
import torch

from gcnsl.auto import AutoSettings, fold_fit, tournament
from gcnsl.auto.candidates import Candidate
from gcnsl.auto.fold_fit import Failed
from gcnsl.auto.journal import Journal
from gcnsl.auto.proposals import Proposals
from gcnsl.auto.race import LARGEST_END, Race
from gcnsl.auto.tournament import select
from gcnsl.errors import Interrupted
from gcnsl.runs import processes
from gcnsl.runs.executor import ThisProcess, TooSlow, WorkerLost
from gcnsl.runs.processes import Processes

from ..runs.fake_executor import FakeExecutor
from .cases import QUICK, make_quick, small_problem

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
    write, count = tournament.FoldFitter.__call__, iter(range(100))

    def killed_after_seven(fitter, job):
        if next(count) == 7:
            raise SystemExit("killed")
        return write(fitter, job)

    monkeypatch.setattr(tournament.FoldFitter, "__call__", killed_after_seven)
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


@pytest.mark.parametrize(
    ("result", "verdict"),
    [
        (Failed("LinAlgError: singular", "Traceback"), "failed: LinAlgError: singular"),
        (WorkerLost("its process was killed"), "failed: its process was killed"),
        (TooSlow("it took too long"), "skipped: not finished within"),
    ],
)
def test_what_fails_is_named(result, verdict, monkeypatch) -> None:
    fit = tournament.FoldFitter.__call__
    mlp = Candidate("MLP", "mlp", {"epochs": 8, "hidden_channels": 8})
    monkeypatch.setattr(
        tournament.FoldFitter, "__call__", lambda fitter, job: result if job.candidate == mlp else fit(fitter, job)
    )
    problem = small_problem(quality="fast")
    table = select(problem, FAST, problem.graph, minutes=5).leaderboard.set_index("model")
    assert table.loc["MLP", "verdict"].startswith(verdict)
    assert np.isnan(table.loc["MLP", "validation"])


MLP = next(candidate for candidate in QUICK if candidate.method == "mlp")


def failing_fit(monkeypatch) -> None:
    fit = fold_fit.fit

    def fails(prepared, **options):
        if prepared.method.name == "mlp":
            raise KeyError("a mistake")
        return fit(prepared, **options)

    monkeypatch.setattr(fold_fit, "fit", fails)


def unreadable_file(monkeypatch) -> None:
    write = Journal.write

    def fails(journal, trained, candidate, fold):
        content = b"cut off" if candidate == MLP else trained.content
        return write(journal, trained._replace(content=content), candidate, fold)

    monkeypatch.setattr(Journal, "write", fails)


def useless_probabilities(monkeypatch) -> None:
    write = Journal.write

    def fails(journal, trained, candidate, fold):
        found = write(journal, trained, candidate, fold)
        return replace(found, probabilities=found.probabilities[:3]) if candidate == MLP else found

    monkeypatch.setattr(Journal, "write", fails)


@pytest.mark.parametrize(
    ("fails", "why"),
    [
        (failing_fit, "failed: KeyError: 'a mistake'"),
        (unreadable_file, "failed: SafetensorError"),
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
    it = Race(problem, QUICK, Proposals(0, seed=0), seconds=10, processes=1, fits=fits)
    assert it.contenders[MLP].failure.startswith("failed: IndexError")
    assert len(it.ranking()) == len(QUICK) - 1


def test_killed_workers_cost_nothing_but_time(monkeypatch) -> None:
    """More of them than may fail in a row; each is killed when it has begun, or is idle."""
    monkeypatch.setattr(tournament, "_own_executor", lambda *_: executor)
    monkeypatch.setattr(processes, "MOST_FAILED", 3)
    monkeypatch.setattr(Race, "quick_job", lambda *_: None)
    problem, killed = small_problem(quality="fast"), []

    def kill(progress) -> None:
        started = [process for process in executor._processes if process.has_started]
        if len(killed) < 6 and started and progress.fits > len(killed):
            started[0]._popen.kill()
            killed.append(started[0])

    executor = processes.Processes(2)
    selected = select(problem, FAST, problem.graph, minutes=5, on_progress=kill)
    assert len(killed) == 6
    assert selected.blend.history.stopped == "complete"
    verdicts = selected.leaderboard["verdict"]
    assert not verdicts.str.contains("failed").all()
    lost = verdicts[verdicts.str.contains("failed")]
    assert lost.str.endswith("failed: its process was killed twice, perhaps for lack of memory").all()


def test_an_interruption_while_the_ensemble_is_chosen_leaves_it(monkeypatch) -> None:
    choose = tournament.choose

    def pressed(*arguments, **options):
        os.kill(os.getpid(), signal.SIGINT)
        return choose(*arguments, **options)

    monkeypatch.setattr(tournament, "choose", pressed)
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


def test_quick_ones_are_trained_while_the_workers_start(monkeypatch) -> None:
    class Starting(FakeExecutor):
        @property
        def ready(self) -> int:
            return self.slots if next(looks) > 2 else 0

    looks, given = itertools.count(), []
    here = tournament.FoldFitter.__call__
    monkeypatch.setattr(
        tournament.FoldFitter, "__call__", lambda fitter, job: given.append(fitter) or here(fitter, job)
    )
    problem = small_problem(quality="fast")
    select(problem, FAST, problem.graph, minutes=5, executor=Starting())
    assert given.count(given[0]) == given.index(given[3]) == 3, "the others are copies"
    assert len(given) == 4 * len(QUICK)


@pytest.mark.parametrize(("seconds", "kind"), [(3, ThisProcess), (60, Processes)])
def test_with_seconds_only_no_process_is_started(seconds, kind, monkeypatch) -> None:
    monkeypatch.undo()
    assert isinstance(tournament._own_executor(small_problem(), FAST, seconds), kind)


@pytest.mark.parametrize("least", [0.0, 20.0])
def test_training_ends_in_time_for_the_end(least, monkeypatch) -> None:
    now = itertools.count(step=3)  # the clock is read several times for each fit
    train = tournament.FoldFitter.__call__
    began: list[float] = []

    def clocked(fitter, job):
        began.append(job.elapsed)
        return train(fitter, job)

    def slow(journal, trained, candidate, fold):
        return replace(write(journal, trained, candidate, fold), least_seconds=least)

    write = Journal.write
    monkeypatch.setattr(tournament, "monotonic", lambda: next(now))
    monkeypatch.setattr(tournament.FoldFitter, "__call__", clocked)
    monkeypatch.setattr(Journal, "write", slow)
    problem = small_problem(quality="fast")
    selected = select(problem, FAST, problem.graph, minutes=1)
    kept = min(2 * least, LARGEST_END * 60)
    assert max(began) < 60 - max(kept, 2)
    assert selected.blend.history.seconds <= 66 - kept, "which leaves the time for the end"


def test_single_is_one_model() -> None:
    problem = small_problem(quality="fast")
    selected = select(problem, AutoSettings(quality="fast", single=True), problem.graph, minutes=5)
    (member,) = selected.blend.members
    assert len(member.fits) == 1
    assert selected.leaderboard["model"].iloc[0] == member.name
    assert selected.leaderboard["verdict"].iloc[0] == "chosen"
