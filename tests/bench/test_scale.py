import itertools

import pytest

from bench import scale
from gcnsl.training import TrainingSettings


def test_the_mean_of_epochs_counts_evaluations_as_often_as_they_occur() -> None:
    steps = [9.0, 1.0, 1.5, 1.0, 2.0, 4.0]  # epochs 5 and 6, the last one, are evaluated
    ends = list(itertools.accumulate(steps))
    settings = TrainingSettings(epochs=6)
    assert scale.mean_epoch(ends, settings.for_nodes(10**6)) == pytest.approx((4 * 1.0 + 3.0) / 5)
    assert scale.mean_epoch(ends, settings.for_nodes(100)) == pytest.approx(1.5)
