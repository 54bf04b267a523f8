import math

import numpy as np
import pytest

from gcnsl.auto.judge import FEW, Judge


def sure(y: np.ndarray, right: np.ndarray, probability: float) -> np.ndarray:
    """Two classes: the right one, or the wrong one, has this probability."""
    guess = np.where(right, y, 1 - y)
    return np.where(np.arange(2) == guess[:, None], probability, 1 - probability)


@pytest.mark.parametrize(("n", "accuracy_leads"), [(FEW - 20, False), (FEW, True)])
def test_the_log_loss_leads_where_there_are_few_nodes(n, accuracy_leads) -> None:
    y = np.arange(n) % 2
    often_right = sure(y, np.arange(n) % 10 > 0, 0.9999)  # and very sure when it is wrong
    modest = sure(y, np.arange(n) % 10 > 1, 0.8)
    judge = Judge("accuracy")
    assert (judge.merit(often_right, y) > judge.merit(modest, y)) == accuracy_leads
    assert Judge("roc-auc").merit(often_right, y).first == Judge("roc-auc").value(often_right, y)


def test_less_is_better_for_a_loss() -> None:
    y = np.arange(400) % 2
    good, bad = sure(y, y >= 0, 0.9), sure(y, y >= 0, 0.6)
    for metric in ("accuracy", "log-loss"):
        assert Judge(metric).merit(good, y) > Judge(metric).merit(bad, y), "between equal accuracies the loss decides"


def test_what_is_not_defined_is_worst() -> None:
    y = np.zeros(5, dtype=int)
    assert Judge("roc-auc").merit(sure(y, y == 0, 0.9), y).first == -math.inf
    assert Judge("accuracy").merit(np.full((5, 2), np.nan), y).first == -math.inf
