import pytest

from gcnsl import InputError
from gcnsl.training import time_budget
from gcnsl.training.time_budget import TimeBudget

from .cases import fit, net


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test sets."""

    class Clock:
        now = 100.0

    monkeypatch.setattr(time_budget.time, "perf_counter", lambda: Clock.now)
    return Clock


def test_the_time_left_is_estimated_from_the_first_epoch_on(clock) -> None:
    budget = TimeBudget()
    clock.now += 4
    budget.count_epoch()
    assert budget.seconds_left(10) == 40
    clock.now += 2
    budget.count_epoch()
    assert budget.seconds_left(10) == 30
    assert not budget.is_spent


def test_the_last_epoch_is_the_last_that_fits(clock) -> None:
    budget = TimeBudget(minutes=1)
    epochs = 0
    while not budget.is_spent:
        assert budget.is_almost_spent == (epochs == 1)
        clock.now += 25
        budget.count_epoch()
        epochs += 1
    assert epochs == 2
    assert budget.seconds_left(10) == 10


def test_one_epoch_is_always_made(clock) -> None:
    budget = TimeBudget(minutes=0)
    assert not budget.is_spent
    clock.now += 1
    budget.count_epoch()
    assert budget.is_spent
    assert budget.seconds_left(10) == 0


def test_a_run_ends_when_its_time_is_over() -> None:
    history = fit(net(), minutes=0)
    assert (len(history), history.best_epoch, history.stopped) == (1, 1, "minutes")
    assert fit(net(), minutes=10).stopped == "epochs"
    seen = []
    fit(net(), minutes=0.01, on_epoch=seen.append)
    assert all(0 <= epoch.seconds_left <= 0.6 for epoch in seen)


@pytest.mark.parametrize("minutes", [-1, float("nan"), "many"])
def test_impossible_times_are_refused(minutes) -> None:
    with pytest.raises(InputError, match=r"minutes\(.*\) must be"):
        fit(net(), minutes=minutes)
