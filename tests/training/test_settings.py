import json

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.utils.class_weight import compute_class_weight

from gcnsl.errors import ArgumentError
from gcnsl.training import TrainingSettings
from gcnsl.training.settings import check_class_weight, class_weights


def test_weights_of_classes_are_one_text_whatever_they_are_given_as() -> None:
    given = ({"yes": 5, "no": 1.0}, "no=1, yes=5", '{"yes": 5, "no": 1}', '{"no": 1.0, "yes": 5.0}')
    assert {TrainingSettings(class_weight=each).class_weight for each in given} == {'{"no": 1.0, "yes": 5.0}'}
    assert TrainingSettings(class_weight="none") == TrainingSettings()
    assert hash(TrainingSettings(class_weight={"a": 2})) != hash(TrainingSettings())


@pytest.mark.parametrize(("given", "nodes", "used"), [(None, 32_768, 1), (None, 32_769, 5), (1, 10**6, 1), (7, 9, 7)])
def test_large_graphs_are_evaluated_less_often_unless_it_is_said_how_often(given, nodes, used) -> None:
    assert TrainingSettings(evaluate_every=given).for_nodes(nodes).evaluate_every == used


@pytest.mark.parametrize(
    ("given", "nodes", "used"), [(None, 32_768, 0), (None, 32_769, 0.01), (0.0, 10**6, 0), (0.2, 9, 0.2)]
)
def test_only_large_graphs_have_a_tolerance_unless_it_is_given(given, nodes, used) -> None:
    assert TrainingSettings(tolerance=given).for_nodes(nodes).tolerance == used


def test_a_table_as_people_write_it() -> None:
    assert json.loads(check_class_weight("x=y=2, z = 0.5")) == {"x=y": 2, "z": 0.5}
    assert json.loads(check_class_weight({1: 2})) == {"1": 2}


@pytest.mark.parametrize(
    "value", ["yes", "5", "yes=5,3", "yes=", "yes=0", "yes=-1", "yes=nan", "{}", "{", {}, [1], 5, {"a": "b"}]
)
def test_anything_else_is_refused_in_one_sentence(value) -> None:
    with pytest.raises(ArgumentError, match="must be none, balanced, or positive weights by class, such as yes=5,no=1"):
        check_class_weight(value)


@given(st.lists(st.integers(0, 4), min_size=1))
def test_balanced_is_scikit_learn_s(y) -> None:
    weights = class_weights("balanced", torch.tensor(y), "abcde")
    present = np.unique(y)
    expected = compute_class_weight("balanced", classes=present, y=np.array(y))
    assert weights[present].numpy() == pytest.approx(expected, rel=1e-6)
    assert all(weights[c] == 1 for c in range(5) if c not in present)


def test_a_class_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ArgumentError, match="names 'maybe'; the classes are no, yes"):
        class_weights(check_class_weight({"maybe": 3}), torch.tensor([0, 1]), ["no", "yes"])
