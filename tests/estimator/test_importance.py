import numpy as np
import pytest

from gcnsl import NodeClassifier
from gcnsl.estimator.importance import ColumnImportance, Importance, measure_importance

N = 240
DRAW = np.random.default_rng(0)
RING = np.stack([np.arange(N), (np.arange(N) + 1) % N])


def fitted(x, y, **options) -> NodeClassifier:
    method = options.pop("method", "logistic")
    return NodeClassifier(method, device="cpu", verbose=False, **options).fit(x, y, edge_index=RING)


def test_a_column_that_does_it_alone_is_told() -> None:
    y = DRAW.integers(2, size=N)
    found = measure_importance(fitted(np.column_stack([DRAW.normal(size=(N, 3)), 4.0 * y]), y))
    assert (found.metric, found.kind, found.of_columns) == ("accuracy", "validation", 4)
    assert found.columns[0].column == found.alone[0] == "feature 3"
    assert found.both > 0.95
    assert found.without_columns < 0.65
    assert "does it alone" in found.leak


def test_edges_that_tell_all_matter_alone() -> None:
    """The class is the column of the next node, so that neither does without the other."""
    column = DRAW.choice([-1.0, 1.0], N)
    y = (np.roll(column, -1) + np.roll(column, 1) > 0).astype(int)
    found = measure_importance(fitted(np.column_stack([column, DRAW.normal(size=N)]), y))
    assert found.both > 0.9
    assert found.without_edges < found.both - 0.15
    assert found.alone is None
    assert not found.leak


def test_rare_classes_are_measured_by_a_metric_that_suits_them() -> None:
    y = (np.arange(N) % 12 == 0).astype(int)
    classifier = fitted(np.column_stack([y + 0.3 * DRAW.normal(size=N), DRAW.normal(size=N)]), y)
    table = classifier.importance_
    assert table.attrs["metric"] == "average-precision"
    assert table["column"][0] == "feature 0"
    assert table["importance"][0] == pytest.approx(table.attrs["both"] - table["shuffled"][0], abs=1e-9)


def test_a_single_repeat_has_no_spread() -> None:
    importance = Importance("accuracy", 9, "test", 0.9, 0.8, 0.7, 0.5, [], 1, None)
    assert importance.worse(ColumnImportance("age", 0.8, 0.1, float("nan"))) == "+10.0 points"
    assert importance.worse(ColumnImportance("age", 0.8, 0.1, 0.0)) == "+10.0 ± 0.0 points"
