import numpy as np
import pytest
import torch
from sklearn.ensemble import HistGradientBoostingClassifier

from gcnsl.errors import InputError
from gcnsl.plain import tree_walk
from gcnsl.plain.column_bins import column_bins, column_edges
from gcnsl.plain.tree_walk import TreeWalk


@pytest.mark.parametrize("block", [1, 1 << 22])
def test_sums_of_leaves_are_those_of_scikit_learn(block, monkeypatch) -> None:
    monkeypatch.setattr(tree_walk, "BLOCK", block)
    rng = np.random.default_rng(0)
    columns, y = rng.standard_normal((200, 5)), rng.integers(0, 3, 200)
    edges = column_edges(columns)
    others = np.vstack([columns, rng.standard_normal((50, 5)), np.full((1, 5), 99.0), np.full((1, 5), -99.0)])
    solver = HistGradientBoostingClassifier(max_iter=4, warm_start=True, max_leaf_nodes=6, early_stopping=False)
    walk = TreeWalk(trees=30, nodes=11)
    assert walk(torch.from_numpy(others)).shape == (252, 0)
    for rounds in (4, 7):
        solver.set_params(max_iter=rounds).fit(column_bins(columns, edges), y)
        walk.keep([tree for trees in solver._predictors for tree in trees], edges)
        sums = walk(torch.from_numpy(others)).view(252, -1, 3).sum(dim=1).numpy()
        expected = solver.decision_function(column_bins(others, edges)) - solver._baseline_prediction
        np.testing.assert_allclose(sums, expected, atol=1e-9)


@pytest.mark.parametrize(
    ("name", "value"),
    [("depth", 2**62), ("used", 31), ("left", -1), ("right", 11), ("feature", -1), ("feature", 2**62)],
)
def test_numbers_that_no_trees_have_are_refused_when_they_are_loaded(name, value) -> None:
    walk = TreeWalk(trees=30, nodes=11)
    state = walk.state_dict()
    walk.load_state_dict(state)
    with pytest.raises(InputError, match=rf"{name}\({value}\) must be"):
        walk.load_state_dict(state | {name: torch.full_like(state[name], value)})


def test_columns_that_are_not_there_are_named() -> None:
    walk = TreeWalk(trees=3, nodes=5)
    walk.load_state_dict(walk.state_dict() | {"feature": torch.full((3, 5), 4)})
    assert walk(torch.ones(2, 5)).shape == (2, 0)
    with pytest.raises(InputError, match=r"feature\(4\) must be from 0 to 3: there are no further columns"):
        walk(torch.ones(2, 4))
