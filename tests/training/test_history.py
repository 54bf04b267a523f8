import json
import math

import pytest

from gcnsl.training import History
from gcnsl.training import history as history_module
from gcnsl.training.history import TimeBudget

from .cases import TEST, fit, net


@pytest.mark.parametrize(
    ("monitor", "best"),
    [
        ("roc-auc", [1, 1, 3, 3, 5]),
        ("accuracy", [1, 1, 3, 3, 5]),
        ("log-loss", [1, 2, 2, 2, 2]),
        ("loss", [1, 1, 1, 1, 5]),
    ],
)
def test_any_metric_can_decide_in_its_own_direction_and_the_loss_between_equal_values(monitor, best) -> None:
    history, found = History(), []
    for value, loss in ((0.6, 1.0), (0.5, 1.0), (0.7, 1.0), (0.7, 1.0), (0.7, 0.9)):
        history.append({"val_loss": loss} | ({} if monitor == "loss" else {f"val_{monitor}": value}), monitor)
        found.append(history.best_epoch)
    assert found == best


def test_where_the_metric_is_not_defined_the_loss_decides() -> None:
    history, found = History(), []
    for value, loss in ((math.nan, 1.0), (math.nan, 0.9), (math.nan, 1.1), (0.1, 2.0), (math.nan, 0.1)):
        history.append({"val_loss": loss, "val_roc-auc": value}, "roc-auc")
        found.append(history.best_epoch)
    assert found == [1, 2, 2, 4, 4]


def test_a_history_survives_json() -> None:
    history = fit(net(), watch={"test": TEST})
    assert History.from_dict(json.loads(json.dumps(history.to_dict()))) == history


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test sets."""

    class Clock:
        now = 100.0

    monkeypatch.setattr(history_module.time, "perf_counter", lambda: Clock.now)
    return Clock


def test_the_last_epoch_is_the_last_that_fits(clock) -> None:
    budget, epochs = TimeBudget(minutes=1), 0
    while budget.allows(1):
        assert budget.allows(2) == (epochs == 0)
        clock.now += 25
        budget.epochs = epochs = epochs + 1
        assert budget.seconds_left(10) == 60 - 25 * epochs
        assert budget.seconds_left(1) == min(25, 60 - 25 * epochs)
    assert epochs == 2
