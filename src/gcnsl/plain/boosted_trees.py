"""Histogram gradient boosting on a node's features, the means over its neighbours, and its place in the graph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import HistGradientBoostingClassifier
from torch import Tensor
from torch_geometric.data import Data

from gcnsl.checks import UNLABELLED, check_whole
from gcnsl.nn.config import Folder, Precomputed
from gcnsl.nn.graph_model import declared_by
from gcnsl.plain.column_bins import BINS, column_bins, column_edges
from gcnsl.plain.neighbour_columns import ABSENT, NeighbourColumns, Place, neighbour_blocks
from gcnsl.plain.plain_config import BoostedTreesConfig, NeighbourColumnsConfig
from gcnsl.plain.tree_walk import TreeWalk
from gcnsl.sparse import Matrix, SparseMatrix, to_scipy

ROUNDS = 10
"""Rounds of boosting in a stage."""


@declared_by(BoostedTreesConfig)
class BoostedTrees(NeighbourColumns):
    r"""Trees that are fitted one after the other, by scikit-learn's ``HistGradientBoostingClassifier``.

    .. math::
        Z = \operatorname{softmax}\Bigl(b + \sum_t f_t(c)\Bigr), \qquad
        c = [X \,\|\, \hat A_v^k X \,\|\, P], \quad k \le K

    with a tree :math:`f_t` for each class and round, and the columns c of :class:`NeighbourColumnsConfig`, P being the
    places of the nodes. Ten rounds are a stage, so that their number is chosen on validation nodes. The forward pass
    returns the logits, in which those of the classes that have training nodes sum to 0.

    Shapes:
        x (n × d); place (n × 36); views, one or three Â (n × n) → n × C.
    """

    is_step_function = True
    """There are no gradients that could tell what a feature adds."""
    bias: Tensor
    mixing: Tensor
    """From the sums of trees to logits (C × C): with two classes, scikit-learn has trees for one of them only."""
    outputs: Tensor
    """Number of trees in a round."""

    def __init__(
        self,
        out_channels: int,
        *,
        hops: int = BoostedTreesConfig.hops,
        trees: int = BoostedTreesConfig.trees,
        learning_rate: float = BoostedTreesConfig.learning_rate,
        leaves: int = BoostedTreesConfig.leaves,
        leaf_nodes: int = BoostedTreesConfig.leaf_nodes,
    ) -> None:
        super().__init__()
        options: dict[str, Any] = {"learning_rate": learning_rate, "leaves": leaves, "leaf_nodes": leaf_nodes}
        self.hops, self.trees, self._options = hops, trees, options
        self.walk = TreeWalk(trees * out_channels, 2 * leaves - 1)
        self.register_buffer("bias", torch.zeros(out_channels))
        self.register_buffer("mixing", torch.zeros(out_channels, out_channels))
        self.register_buffer("outputs", torch.tensor(1))
        self.register_load_state_dict_post_hook(BoostedTrees._check_loaded)  # type: ignore[no-untyped-call]

    def _check_loaded(self, _: Any) -> None:
        """Refuse a number of outputs in a file that the trees can't be shared among."""
        outputs = check_whole("outputs", int(self.outputs), least=1, most=len(self.bias))
        if int(self.walk.used) % outputs:
            raise ValueError(f"{int(self.walk.used)} trees can't be shared among {outputs} outputs")

    @classmethod
    def precompute(
        cls, config: BoostedTreesConfig, graph: Data, *, seed: int, root: Folder = None
    ) -> Precomputed | None:
        """The places of the nodes in the graph and, for a wide X, its leading directions."""
        place = Place.fit(graph)
        if graph.num_features <= config.components:
            return place
        svd = TruncatedSVD(min(config.components, graph.num_nodes), random_state=seed).fit(to_scipy(graph.x))
        return replace(place, basis=torch.from_numpy(svd.components_.T.copy()).float())

    @classmethod
    def inputs(
        cls, config: NeighbourColumnsConfig, graph: Data, *, precomputed: Precomputed | None, seed: int
    ) -> tuple[Matrix, ...]:
        """X or what it is reduced to, the places of the nodes, and Â in each view."""
        assert isinstance(precomputed, Place)
        x, *others = super().inputs(config, graph, precomputed=precomputed, seed=seed)
        if precomputed.basis is not None:
            return x @ precomputed.basis, *others
        return x if isinstance(x, Tensor) else x.to_dense(), *others

    def stages(self, inputs: Sequence[Matrix], y: Tensor, weight: Tensor) -> Iterator[None]:
        """Grow ten trees of each class at a time."""
        rows = (y != UNLABELLED).nonzero().flatten()
        target = y[rows].cpu().numpy()
        classes = np.unique(target)
        self.bias.fill_(ABSENT)
        for earlier in (self.mixing, self.walk.used, self.walk.depth):
            earlier.zero_()
        if len(classes) == 1:
            self.bias[target[0]] = 0
            yield
            return
        columns = self._columns(*inputs)[rows].double().cpu().numpy()
        edges = column_edges(columns)
        bins, sample_weight = column_bins(columns, edges), weight[rows].cpu().numpy()
        solver = HistGradientBoostingClassifier(
            learning_rate=self._options["learning_rate"],
            max_leaf_nodes=self._options["leaves"],
            min_samples_leaf=self._options["leaf_nodes"],
            max_bins=BINS,
            early_stopping=False,
            warm_start=True,
            random_state=0,
        )
        for rounds in range(ROUNDS, self.trees + ROUNDS, ROUNDS):
            solver.set_params(max_iter=min(rounds, self.trees)).fit(bins, target, sample_weight)
            if rounds == ROUNDS:
                self._set_outputs(torch.from_numpy(classes), torch.from_numpy(solver._baseline_prediction[0]))
            self.walk.keep([tree for trees in solver._predictors for tree in trees], edges)
            yield

    def _set_outputs(self, classes: Tensor, baseline: Tensor) -> None:
        """Remember how the sums of trees become logits of all classes."""
        among = torch.eye(len(classes)) - 1 / len(classes)
        among = among[1:] if len(classes) == 2 else among  # the log-odds of the second class
        self.outputs.fill_(len(among))
        self.mixing[: len(among), classes] = among.to(self.mixing)
        self.bias[classes] = (baseline.to(among) @ among).to(self.bias)

    def forward(self, x: Tensor, place: Tensor, *views: SparseMatrix) -> Tensor:
        """Logits of every node (n × C)."""
        outputs = int(self.outputs)
        values: Tensor = self.walk(self._columns(x, place, *views))
        sums = values.view(len(values), -1, outputs).sum(dim=1)
        return sums.to(self.mixing) @ self.mixing[:outputs] + self.bias

    def _columns(self, x: Any, place: Any, *views: Matrix) -> Tensor:
        return torch.cat([place, *neighbour_blocks(x, views, self.hops)], dim=1)
