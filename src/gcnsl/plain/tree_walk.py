"""Decision trees as tensors, walked for all nodes and trees at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from gcnsl.checks import check_whole
from gcnsl.sparse import as_tensor

BLOCK = 1 << 22
"""At most so many pairs of a row and a tree are walked at a time."""


class TreeWalk(nn.Module):
    """Decision trees with a value in each leaf; there is room for a fixed number of them, of which the first are used.

    In an inner node, the walk goes left if ``column[feature] <= threshold``. A leaf leads to itself, so that all trees
    can be walked equally far. Columns are complete: there is no rule for missing values.

    Args:
        trees: Number of trees (T).
        nodes: Largest number of nodes of a tree (M).

    Shapes:
        columns (n × m) → values (n × used); the buffers of nodes are T × M.
    """

    feature: Tensor
    threshold: Tensor
    left: Tensor
    right: Tensor
    value: Tensor
    used: Tensor
    depth: Tensor

    def __init__(self, trees: int, nodes: int) -> None:
        super().__init__()
        itself = torch.arange(nodes).repeat(trees, 1)
        self.register_buffer("feature", torch.zeros_like(itself))
        self.register_buffer("threshold", torch.zeros(trees, nodes, dtype=torch.float64))
        self.register_buffer("left", itself)
        self.register_buffer("right", itself.clone())
        self.register_buffer("value", torch.zeros(trees, nodes, dtype=torch.float64))
        self.register_buffer("used", torch.tensor(0))
        self.register_buffer("depth", torch.tensor(0))
        self.register_load_state_dict_post_hook(TreeWalk._check_loaded)  # type: ignore[no-untyped-call]

    def _check_loaded(self, _: Any) -> None:
        """Refuse numbers in a file that no trees have: they would be walked without end, or beyond their nodes."""
        trees, nodes = self.left.shape
        check_whole("used", int(self.used), most=trees)
        check_whole("depth", int(self.depth), most=nodes)
        for name, numbers in (("feature", self.feature), ("left", self.left), ("right", self.right)):
            check_whole(name, int(numbers.min()))
            check_whole(name, int(numbers.max()), most=None if name == "feature" else nodes - 1)

    def keep(self, predictors: Sequence[Any], edges: NDArray[np.float64]) -> None:
        """Store the trees of scikit-learn's histogram boosting after those that are stored already.

        They were fitted to the bins of the columns, so that a threshold is the number of an edge (m × edges).
        """
        for number, predictor in enumerate(predictors[int(self.used) :], start=int(self.used)):
            read = {name: as_tensor(predictor.nodes[name].copy()) for name in predictor.nodes.dtype.names}
            leaf, size = read["is_leaf"].bool(), len(predictor.nodes)
            itself = torch.arange(size)
            feature = read["feature_idx"].where(~leaf, 0)
            edge = read["num_threshold"].where(~leaf, 0).long()
            self.feature[number, :size] = feature.to(self.feature)
            threshold = torch.from_numpy(edges)[feature, edge].where(~leaf, 0)
            self.threshold[number, :size] = threshold.to(self.threshold)
            self.left[number, :size] = read["left"].long().where(~leaf, itself).to(self.left)
            self.right[number, :size] = read["right"].long().where(~leaf, itself).to(self.right)
            self.value[number, :size] = read["value"].where(leaf, 0).to(self.value)
            self.depth.clamp_(min=int(read["depth"].long().max()))
        self.used.fill_(len(predictors))

    def forward(self, columns: Tensor) -> Tensor:
        """The value of each used tree for each row (n × used)."""
        check_whole("feature", int(self.feature.max()), most=columns.shape[1] - 1, why="there are no further columns")
        step = max(1, BLOCK // max(1, int(self.used)))
        return torch.cat([self._walk(rows) for rows in torch.split(columns.double(), step)])

    def _walk(self, columns: Tensor) -> Tensor:
        tree = torch.arange(int(self.used), device=columns.device)
        node = torch.zeros(len(columns), len(tree), dtype=torch.long, device=columns.device)
        for _ in range(int(self.depth)):
            goes_left = columns.gather(1, self.feature[tree, node]) <= self.threshold[tree, node]
            node = torch.where(goes_left, self.left[tree, node], self.right[tree, node])
        return self.value[tree, node]
