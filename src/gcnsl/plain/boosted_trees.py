"""Gradient boosting on a node's features, its neighbours' features and known labels, and its place in the graph."""

from __future__ import annotations

import functools
import io
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import HistGradientBoostingClassifier
from torch import Tensor
from torch_geometric.data import Data

from gcnsl.checks import UNLABELLED
from gcnsl.errors import InputError
from gcnsl.nn.config import Folder, Precomputed
from gcnsl.nn.graph_model import declared_by
from gcnsl.nn.preprocessing import relation_count
from gcnsl.plain.neighbour_columns import (
    ABSENT,
    VIEWS,
    Contributions,
    NeighbourColumns,
    Place,
    all_columns,
    all_sources,
    known_links,
    known_links_by_kind,
    label_columns,
    summed,
)
from gcnsl.plain.plain_config import BoostedTreesConfig, NeighbourColumnsConfig
from gcnsl.sparse import Matrix, SparseMatrix, to_scipy

Array = NDArray[Any]
ROUNDS = 10
"""Rounds of boosting in a stage."""
MAX_BINS = 63
"""255 bins, LightGBM's default, took three times as long on three graphs and were not better."""
_LIGHTGBM = {"max_bin": MAX_BINS, "num_threads": 1, "deterministic": True, "force_col_wise": True, "verbosity": -1}
"""The same trees everywhere, in one thread, and no output."""


class LightGBMWarning(UserWarning):
    """LightGBM can't be loaded, and scikit-learn's boosted trees take its place."""


@declared_by(BoostedTreesConfig)
class BoostedTrees(NeighbourColumns):
    r"""Trees that are fitted one after the other, by LightGBM.

    .. math::
        Z = \operatorname{softmax}\Bigl(\sum_t f_t(c)\Bigr), \qquad
        c = [P \,\|\, X \,\|\, \hat A_v^k X \,\|\, \max_{j \sim i} X_j \,\|\, \dots \,\|\, S], \quad k \le K

    with a tree :math:`f_t` for each class and round, and the columns c of :mod:`gcnsl.plain.neighbour_columns`: the
    places P of the nodes, their features and their neighbours', and the shares S of known labels. Ten rounds are a
    stage, so that their number is chosen on validation nodes. The forward pass returns the logits, in which those of
    the classes that have training nodes sum to 0.

    LightGBM's text of the trees is saved with the model. Where LightGBM can't be loaded, scikit-learn's
    ``HistGradientBoostingClassifier`` takes its place; what is saved then is what the trees were fitted to, as
    scikit-learn has no form for them but pickle, and they are fitted again when they are needed.

    Shapes:
        columns (N × m); links, any number of N × n → N × C.
    """

    seen: Tensor
    """The classes that have training nodes (C)."""
    known: Tensor
    """A 1 for the class of each training node (n × C)."""

    def __init__(
        self,
        num_nodes: int,
        out_channels: int,
        *,
        trees: int = BoostedTreesConfig.trees,
        learning_rate: float = BoostedTreesConfig.learning_rate,
        leaves: int = BoostedTreesConfig.leaves,
        leaf_nodes: int = BoostedTreesConfig.leaf_nodes,
    ) -> None:
        super().__init__()
        self.trees = trees
        self._options = {"learning_rate": learning_rate, "num_leaves": leaves, "min_data_in_leaf": leaf_nodes}
        self._saved = b""
        self._sums: tuple[Tensor, Array] | None = None  # of the trees so far, for the nodes that they are fitted on
        self.register_buffer("seen", torch.zeros(out_channels, dtype=torch.bool))
        self.register_buffer("known", torch.zeros(num_nodes, out_channels))

    def get_extra_state(self) -> Tensor:
        """The trees as they are saved."""
        return torch.from_numpy(np.frombuffer(self._saved, np.uint8).copy()).to(self.seen.device)

    def set_extra_state(self, state: Tensor) -> None:
        """Take the trees that :meth:`get_extra_state` returned."""
        self._saved, self._sums = state.cpu().numpy().tobytes(), None

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
        """All columns but those of known labels, and the links to training nodes in each view for these."""
        assert isinstance(precomputed, Place)
        assert isinstance(config, BoostedTreesConfig)
        x, place, *views = super().inputs(config, graph, precomputed=precomputed, seed=seed)
        x = x @ precomputed.basis if precomputed.basis is not None else x if isinstance(x, Tensor) else x.to_dense()
        seen_along = VIEWS[: len(views)] if config.labels else ()
        columns = all_columns(x, place, views, graph, config.hops)
        links = [known_links(graph, view) for view in seen_along]
        return columns, *links, *known_links_by_kind(graph, seen_along)

    def stages(self, inputs: Sequence[Matrix], y: Tensor, weight: Tensor) -> Iterator[None]:
        """Grow ten trees of each class at a time."""
        rows = (y != UNLABELLED).nonzero().flatten()
        classes, target = torch.unique(y[rows], return_inverse=True)
        self._saved, self._sums = b"", None
        self.seen.zero_()[classes] = True
        self.known.zero_()[rows, y[rows]] = 1
        if len(classes) == 1:
            yield
            return
        columns, given = self._columns(*inputs), inputs[0]
        assert isinstance(given, Tensor)
        known = columns[rows.cpu().numpy()], target.cpu().numpy(), weight[rows].cpu().numpy()
        grow = _grow_by_scikit_learn if _lightgbm() is None else _grow_by_lightgbm
        for saved, sums in grow(*known, columns, trees=self.trees, options=self._options):
            self._saved, self._sums = saved, None if sums is None else (given, sums)
            yield

    def logits(self, columns: Tensor, *links: SparseMatrix) -> Tensor:
        """Logits of every node (N × C)."""
        logits = torch.full((len(columns), len(self.seen)), ABSENT, device=columns.device)
        values: Array = np.zeros((len(columns), int(self.seen.sum())))
        if self._sums is not None and self._sums[0] is columns:
            values = self._sums[1]
        elif self._saved:
            values = _sums_of_trees(self._saved, self._columns(columns, *links))
        values = values if values.ndim == 2 else np.stack([-values, values], axis=1) / 2  # log-odds of the second
        logits[:, self.seen] = torch.from_numpy(values - values.mean(axis=1, keepdims=True)).to(logits)
        return logits

    def contributions(
        self, inputs: Sequence[Any], graph: Data, config: BoostedTreesConfig, *, node: int, one: int, other: int
    ) -> Contributions:
        """What each column adds to the log-odds of class ``one`` against class ``other`` at a node: TreeSHAP.

        If X was reduced to components, these are its features here. None without LightGBM.
        """
        if not self._saved or self._saved.startswith(b"PK"):
            return {}
        row = self._columns(*inputs)[[node]]
        shares = _booster(self._saved).predict(row, pred_contrib=True, num_threads=1).reshape(-1, row.shape[1] + 1)
        shares = shares if len(shares) > 1 else np.concatenate([-shares, shares]) / 2  # they are of the second class
        of_class = np.zeros((len(self.seen), row.shape[1]))
        of_class[self.seen.cpu().numpy()] = shares[:, :-1]
        views = 3 if config.direction == "both" and "arc_index" in graph else 1
        classes = len(self.seen) if config.labels else 0
        sources = all_sources(inputs[0].shape[1], views, config.hops, classes, relation_count(graph))
        return summed(sources, of_class[one] - of_class[other])

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_sums": None}  # they can be computed again, and are large

    def _columns(self, columns: Any, *links: Any) -> Array:
        """All columns (N × m)."""
        shares = [label_columns(self.known, *links)] if links else []
        return np.asarray(torch.cat([columns, *shares], dim=1).cpu().numpy())


@functools.cache
def _lightgbm() -> Any:
    """The package, or ``None`` after a warning if it can't be loaded; torch, loaded already, brings a libgomp."""
    try:
        import lightgbm
    except (ImportError, OSError) as error:
        warnings.warn(
            f"LightGBM can't be loaded ({error}), so scikit-learn's boosted trees take its place, which are slower: "
            "install the system's OpenMP (libgomp1, or libomp on macOS)",
            LightGBMWarning,
            stacklevel=2,
        )
        return None
    return lightgbm


def _grow_by_lightgbm(
    columns: Array, target: Array, weight: Array, everywhere: Array, *, trees: int, options: dict[str, Any]
) -> Iterator[tuple[bytes, Array | None]]:
    """LightGBM's text of the trees, after every few rounds, and their sums for all nodes."""
    lightgbm, classes = _lightgbm(), int(target.max()) + 1
    objective = {"objective": "binary"} if classes == 2 else {"objective": "multiclass", "num_class": classes}
    parameters = _LIGHTGBM | options | objective
    booster = lightgbm.Booster(parameters, lightgbm.Dataset(columns, target, weight=weight, params=parameters))
    is_complete, sums = False, 0.0
    for rounds in range(0, trees, ROUNDS):
        for _ in range(min(ROUNDS, trees - rounds)):
            is_complete = is_complete or booster.update()  # no leaf can be divided any more
        new = {"start_iteration": rounds, "num_iteration": ROUNDS}
        if booster.current_iteration() > rounds:
            sums = sums + booster.predict(everywhere, raw_score=True, num_threads=1, **new)
        yield booster.model_to_string().encode(), np.asarray(sums)
        if is_complete:
            return


def _grow_by_scikit_learn(
    columns: Array, target: Array, weight: Array, everywhere: Array, *, trees: int, options: dict[str, Any]
) -> Iterator[tuple[bytes, Array | None]]:
    """What the trees are fitted to, for more and more rounds, as an npz file without pickles."""
    for rounds in range(ROUNDS, trees + ROUNDS, ROUNDS):
        file = io.BytesIO()
        np.savez(file, columns=columns, target=target, weight=weight, rounds=min(rounds, trees), **options)
        yield file.getvalue(), None


def _sums_of_trees(saved: bytes, columns: Array) -> Array:
    """The sums of the trees of each class (n × C), or for two classes those of the second (n)."""
    if saved.startswith(b"PK"):
        with np.load(io.BytesIO(saved), allow_pickle=False) as fitted:
            solver = HistGradientBoostingClassifier(
                learning_rate=float(fitted["learning_rate"]),
                max_leaf_nodes=int(fitted["num_leaves"]),
                min_samples_leaf=int(fitted["min_data_in_leaf"]),
                max_iter=int(fitted["rounds"]),
                max_bins=MAX_BINS,
                early_stopping=False,
                random_state=0,
            ).fit(fitted["columns"], fitted["target"], fitted["weight"])
        return np.asarray(solver.decision_function(columns))
    return np.asarray(_booster(saved).predict(columns, raw_score=True, num_threads=1))


def _booster(saved: bytes) -> Any:
    lightgbm = _lightgbm()
    if lightgbm is None:
        raise InputError("the model has LightGBM's trees, which need LightGBM: install the system's OpenMP (libgomp1)")
    return lightgbm.Booster(model_str=saved.decode())
