import numpy as np
import pytest
import torch
from sklearn.ensemble import HistGradientBoostingClassifier

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
