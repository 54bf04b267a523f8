import math

import optuna
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from optuna.trial import TrialState, create_trial

from gcnsl.evaluation.ask_and_tell import DONE, PATIENT_TRIALS, Asked, _medians, count, share_trials

from ..runs.fake_executor import FakeExecutor

RUNS = 3
MEANS = st.lists(st.integers(0, 4).map(float), min_size=RUNS, max_size=RUNS)


@pytest.fixture(autouse=True)
def quiet():
    optuna.logging.set_verbosity(optuna.logging.WARNING)


def make_study() -> optuna.Study:
    pruner = optuna.pruners.MedianPruner(n_startup_trials=PATIENT_TRIALS)
    sampler = optuna.samplers.RandomSampler(seed=0)
    return optuna.create_study(direction="maximize", pruner=pruner, sampler=sampler)


def suggest(trial: optuna.Trial) -> dict[str, float]:
    return {"x": trial.suggest_float("x", 0, 1)}


def judge(asked: Asked) -> list[float] | None:
    means = []
    for _ in range(RUNS):
        means.append(asked.options["x"])
        if asked.falls_behind(means):
            break
    return means


def judge_or_fail(asked: Asked) -> list[float] | None:
    return None if asked.number == 1 else judge(asked)


@settings(max_examples=50)
@given(st.lists(MEANS, max_size=8), MEANS)
def test_trials_are_given_up_as_by_optuna_s_pruner(earlier, means) -> None:
    study = make_study()
    for values in earlier:
        trial = create_trial(value=values[-1], intermediate_values=dict(enumerate(values)))
        study.add_trial(trial)
    asked, trial = Asked(0, {}, _medians(study, RUNS)), study.ask()
    for run, mean in enumerate(means):
        trial.report(mean, run)
        assert asked.falls_behind(means[: run + 1]) == trial.should_prune()


def test_all_trials_are_told_and_there_are_not_more_than_wanted() -> None:
    study, executor = make_study(), FakeExecutor(slots=3)
    share_trials(study, executor, judge, suggest, runs=RUNS, trials=20)
    assert count(study, DONE) == len(study.trials) == 20
    assert executor.most_under_way == 3
    for trial in study.trials:
        assert trial.value == trial.params["x"]
        assert len(trial.intermediate_values) == (RUNS if trial.state == TrialState.COMPLETE else 1)
    assert {trial.state for trial in study.trials} == set(DONE)
    share_trials(study, executor, judge, suggest, runs=RUNS, trials=20)
    assert len(study.trials) == 20


def test_a_trial_that_fails_is_replaced() -> None:
    study = make_study()
    share_trials(study, FakeExecutor(slots=1), judge_or_fail, suggest, runs=RUNS, trials=3)
    assert [trial.state.name for trial in study.trials] == ["COMPLETE", "FAIL", "COMPLETE", "COMPLETE"]


class AllLost(list):
    """Whatever is asked for is in it."""

    def __contains__(self, item) -> bool:
        return True


@pytest.mark.parametrize(("trials", "combinations", "tried"), [(4, math.inf, 4), (4, 3, 3)])
def test_if_all_fail_it_ends(trials, combinations, tried) -> None:
    study, executor = make_study(), FakeExecutor(slots=1, lost=AllLost())
    share_trials(study, executor, judge, suggest, runs=RUNS, trials=trials, combinations=combinations)
    assert [trial.state.name for trial in study.trials] == ["FAIL"] * tried


def test_no_trial_is_begun_when_the_time_is_up() -> None:
    study = make_study()
    share_trials(study, FakeExecutor(), judge, suggest, runs=RUNS, trials=3, seconds=-1)
    assert study.trials == []
