import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcnsl.auto.candidates import Candidate, FoldJob
from gcnsl.auto.ensemble import tempered
from gcnsl.auto.proposals import Tried
from gcnsl.auto.race import FOR_THE_END, LARGEST_END, SEARCH_UNTIL, TimedRace

from .cases import fake_fit, small_problem

METHODS = ("gcn", "mlp", "sage", "linkx", "fsgnn", "gpr-gnn")
PORTFOLIO = [Candidate(name, name) for name in METHODS]
SKILL = dict(zip(METHODS, (0.9, 0.5, 0.8, 0.3, 0.7, 0.2), strict=True))


def race(*, trials: int = 0, seconds: float = 100.0, fits=(), **options) -> TimedRace:
    problem = small_problem(n=120, **options)
    total = seconds / (1 - FOR_THE_END)  # so that there are so many for training
    return TimedRace(problem, PORTFOLIO, trials=trials, seconds=total, processes=1, fits=fits)


def finish(it: TimedRace, job: FoldJob, *, seconds: float = 1.0) -> None:
    it.add(fake_fit(it.problem, job.candidate, job.run, skill=SKILL[job.candidate.method], seconds=seconds))


def play(it: TimedRace, *, seconds_each: float, until: float = 1e9) -> list[tuple[str, int]]:
    """Run the race with one process whose fits all take as long; returns what was done."""
    elapsed, done = 0.0, []
    while elapsed < until and (job := it.next_job(elapsed)) is not None:
        assert 0 < job.seconds <= it.seconds - elapsed
        elapsed += seconds_each
        finish(it, job, seconds=seconds_each)
        done.append((job.candidate.method, job.run))
    return done


def test_all_are_tried_before_the_better_ones_go_on() -> None:
    done = play(race(seconds=1000), seconds_each=1)
    assert [fold for _, fold in done[:6]] == [0] * 6
    assert [name for name, _ in done[:6]] == list(METHODS)
    assert len(set(done)) == len(done) == 6 * 5, "there is time for everything"


def test_with_little_time_the_best_complete_their_folds() -> None:
    it = race(seconds=20)
    play(it, seconds_each=1)
    levels = {contender.candidate.method: contender.level for contender in it.contenders.values()}
    assert levels["gcn"] == levels["sage"] == 5
    assert min(levels.values()) == 1
    assert sum(levels.values()) == 20


def test_new_candidates_come_between_until_the_end_is_near() -> None:
    it, elapsed, begun = race(trials=100, seconds=200), 0.0, {}
    while (job := it.next_job(elapsed)) is not None and elapsed < 199:
        begun.setdefault(job.candidate, elapsed)
        elapsed += 1
        finish(it, job)
    new = [when for candidate, when in begun.items() if candidate not in PORTFOLIO]
    assert len(new) > 10
    assert max(new) < SEARCH_UNTIL * 200
    methods = [candidate.method for candidate in begun if candidate not in PORTFOLIO]
    assert methods.count("gcn") > methods.count("fsgnn"), "better methods have more turns"
    assert "gpr-gnn" not in methods


def test_it_goes_on_from_finished_fits() -> None:
    problem = small_problem(n=120)
    other = Candidate("GCN #1", "gcn", {"num_layers": 3})
    fits = [fake_fit(problem, PORTFOLIO[0], fold, skill=0.9) for fold in range(3)]
    it = race(fits=[*fits, fake_fit(problem, other, 0, skill=0.4)])
    assert it.contenders[PORTFOLIO[0]].level == 3
    assert it.contenders[other].level == 1
    done = play(it, seconds_each=1)
    assert ("gcn", 3) in done
    assert ("gcn", 0) not in done
    assert it.contenders[PORTFOLIO[0]].level == 5


def test_out_of_fold_nodes_are_judged_by_models_that_did_not_learn_them() -> None:
    problem = small_problem(n=120)
    it = race(fits=[fake_fit(problem, PORTFOLIO[0], fold, skill=0.5) for fold in range(5)])
    contender = it.contenders[PORTFOLIO[0]]
    nodes = problem.validated(3).nonzero().flatten().tolist()
    expected = np.stack([contender.fits[int(problem.fold[node])].probabilities[node] for node in nodes])
    assert it.out_of_fold(contender, 3) == pytest.approx(tempered(expected, it.temperature(contender, 3)))
    assert contender.probabilities() == pytest.approx(sum(fit.probabilities for fit in contender.fits) / 5)


def test_one_that_predicts_the_same_as_another_does_not_go_on() -> None:
    it = race(trials=20, seconds=1000)
    first = fake_fit(it.problem, PORTFOLIO[0], 0, skill=0.9)
    it.add(first)
    it.add(replace(first, candidate=PORTFOLIO[1]))
    other = replace(first, candidate=PORTFOLIO[2], probabilities=first.probabilities.copy())
    other.probabilities[::10] = 1 / 3
    it.add(other)
    assert [it.contenders[each].same_as for each in PORTFOLIO[:3]] == ["", "gcn", ""]
    play(it, seconds_each=1)
    assert [it.contenders[each].level for each in PORTFOLIO[:3]] == [5, 1, 5]
    assert it.contenders[PORTFOLIO[1]] not in it.weighed()[0]
    it.lose(it.contenders[PORTFOLIO[0]], "failed: its file is lost")
    assert not it.contenders[PORTFOLIO[1]].same_as


def test_with_many_nodes_one_fold_compares_and_the_ensemble_completes_its_folds() -> None:
    problem = small_problem(n=8000)
    it = TimedRace(problem, PORTFOLIO, trials=0, seconds=100.0, processes=1)
    done = play(it, seconds_each=2)
    assert [fold for _, fold in done[:6]] == [0] * 6
    pool, (weights, _) = it.weighed()
    levels = {contender: contender.level for contender in it.contenders.values()}
    for number, contender in enumerate(pool):
        assert levels[contender] == (5 if weights[number] > 0 else 1)


def test_what_cannot_end_in_time_is_skipped_and_says_so() -> None:
    it = race(seconds=100)
    it._millions = 1e3  # a large graph
    first = it.next_job(0.0)
    it.add(fake_fit(it.problem, first.candidate, 0, skill=0.9, least=10.0))
    begun = [job.candidate.method for job in iter(lambda: it.next_job(15.0), None) if job.run == 0]
    skipped = {c.candidate.method: c.failure for c in it.contenders.values() if c.failure}
    assert set(begun) == {"mlp", "sage", "linkx", "gpr-gnn"}
    assert skipped.keys() == {"fsgnn"}, "it takes eleven times as long as the first"
    assert re.fullmatch(r"skipped: needs about 113 s, more than half of the 6\d s left", skipped["fsgnn"])


@given(least=st.floats(0, 1e4))
def test_time_is_kept_for_the_end(least) -> None:
    it = race(seconds=96)
    it.add(fake_fit(it.problem, PORTFOLIO[0], 0, skill=0.9, least=least))
    assert 100 * (1 - LARGEST_END) <= it.seconds <= 96.0001
    assert it.seconds == pytest.approx(100 - 2 * least) or not 4 < 2 * least < 100 * LARGEST_END


def test_a_proposal_that_is_a_contender_already_is_not_trained_again() -> None:
    problem, twins = small_problem(n=120), Candidate("twins", "twins", {"direction": "out"})
    it = TimedRace(problem, [twins], trials=8, seconds=100, processes=2)
    begun = []
    for _ in range(20):  # there are few settings of twins, so that proposals repeat
        job = it.next_job(60.0)
        if job is None:
            break
        begun.append((job.candidate, job.run))
        if len(begun) % 2:
            it.add(fake_fit(problem, job.candidate, job.run, skill=0.9, seconds=0.1))
    assert len(begun) == len(set(begun)) > 3


def test_proposals_go_on_after_those_of_an_earlier_command() -> None:
    before = race(trials=4, seconds=200)
    play(before, seconds_each=2)
    fits = [fit for contender in before.contenders.values() for fit in contender.fits]
    names = {fit.candidate.name for fit in fits}
    assert {name.rpartition("#")[2] for name in names if "#" in name} == set("1234")
    after = race(trials=6, seconds=200, fits=sorted(fits, key=lambda fit: fit.fold))
    new = [after._proposals.ask({"gcn": Tried([0.5], 1.0)}) for _ in range(3)]
    assert [each and each[0].name for each in new] == ["GCN #5", "GCN #6", None]
