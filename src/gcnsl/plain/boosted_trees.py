"""Gradient boosting on a node's features, the means over its neighbours, and its place in the graph."""

from __future__ import annotations

import functools
import io
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from hashlib import sha256
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
from gcnsl.plain.neighbour_columns import ABSENT, NeighbourColumns, Place, neighbour_blocks
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
        c = [X \,\|\, \hat A_v^k X \,\|\, P], \quad k \le K

    with a tree :math:`f_t` for each class and round, and the columns c of :class:`NeighbourColumnsConfig`, P being the
    places of the nodes. Ten rounds are a stage, so that their number is chosen on validation nodes. The forward pass
    returns the logits, in which those of the classes that have training nodes sum to 0.

    LightGBM's text of the trees is saved with the model. Where LightGBM can't be loaded, scikit-learn's
    ``HistGradientBoostingClassifier`` takes its place; what is saved then is what the trees were fitted to, as
    scikit-learn has no form for them but pickle, and they are fitted again when they are needed.

    Shapes:
        x (n × d); place (n × 36); views, one or three Â (n × n) → n × C.
    """

    is_step_function = True
    """There are no gradients that could tell what a feature adds."""
    seen: Tensor
    """The classes that have training nodes (C)."""

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
        self.hops, self.trees = hops, trees
        self._options = {"learning_rate": learning_rate, "num_leaves": leaves, "min_data_in_leaf": leaf_nodes}
        self._saved = b""
        self.register_buffer("seen", torch.zeros(out_channels, dtype=torch.bool))

    def get_extra_state(self) -> Tensor:
        """The trees as they are saved, after their SHA-256: LightGBM does not check what it reads."""
        content = sha256(self._saved).digest() + self._saved
        return torch.from_numpy(np.frombuffer(content, np.uint8).copy()).to(self.seen.device)

    def set_extra_state(self, state: Tensor) -> None:
        """Take the trees that :meth:`get_extra_state` returned."""
        content = state.cpu().numpy().tobytes()
        digest, self._saved = content[:32], content[32:]
        if sha256(self._saved).digest() != digest:
            raise ValueError("its trees are not those that were saved")

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *others: Any) -> None:
        if f"{prefix}walk.used" in state_dict:
            raise ValueError("its boosted trees are in the form of version 0.2.0")
        super()._load_from_state_dict(state_dict, prefix, *others)

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
        classes, target = torch.unique(y[rows], return_inverse=True)
        self._saved = b""
        self.seen.zero_()
        self.seen[classes] = True
        if len(classes) == 1:
            yield
            return
        columns, sample_weight = (part[rows].cpu().numpy() for part in (self._columns(*inputs), weight))
        grow = _grow_by_scikit_learn if _lightgbm() is None else _grow_by_lightgbm
        for saved in grow(columns, target.cpu().numpy(), sample_weight, self.trees, self._options):
            self._saved = saved
            yield

    def logits(self, x: Tensor, place: Tensor, *views: SparseMatrix) -> Tensor:
        """Logits of every node (n × C)."""
        logits = torch.full((len(place), len(self.seen)), ABSENT, device=place.device)
        sums = torch.zeros(len(place), int(self.seen.sum()), device=place.device)
        if self._saved:
            values = _sums_of_trees(self._saved, self._columns(x, place, *views).cpu().numpy())
            values = values if values.ndim == 2 else np.stack([-values, values], axis=1) / 2  # log-odds of the second
            sums = torch.from_numpy(values - values.mean(axis=1, keepdims=True)).to(sums)
        logits[:, self.seen] = sums
        return logits

    def _columns(self, x: Any, place: Any, *views: Matrix) -> Tensor:
        return torch.cat([place, *neighbour_blocks(x, views, self.hops)], dim=1)


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
    columns: Array, target: Array, weight: Array, trees: int, options: dict[str, Any]
) -> Iterator[bytes]:
    """LightGBM's text of the trees, after every few rounds."""
    lightgbm, classes = _lightgbm(), int(target.max()) + 1
    objective = {"objective": "binary"} if classes == 2 else {"objective": "multiclass", "num_class": classes}
    parameters = _LIGHTGBM | options | objective
    booster = lightgbm.Booster(parameters, lightgbm.Dataset(columns, target, weight=weight, params=parameters))
    is_complete = False
    for rounds in range(0, trees, ROUNDS):
        for _ in range(min(ROUNDS, trees - rounds)):
            is_complete = is_complete or booster.update()  # no leaf can be divided any more
        yield booster.model_to_string().encode()
        if is_complete:
            return


def _grow_by_scikit_learn(
    columns: Array, target: Array, weight: Array, trees: int, options: dict[str, Any]
) -> Iterator[bytes]:
    """What the trees are fitted to, for more and more rounds, as an npz file without pickles."""
    for rounds in range(ROUNDS, trees + ROUNDS, ROUNDS):
        file = io.BytesIO()
        np.savez(file, columns=columns, target=target, weight=weight, rounds=min(rounds, trees), **options)
        yield file.getvalue()


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
    lightgbm = _lightgbm()
    if lightgbm is None:
        raise InputError("the model has LightGBM's trees, which need LightGBM: install the system's OpenMP (libgomp1)")
    booster = lightgbm.Booster(model_str=saved.decode())
    return np.asarray(booster.predict(columns, raw_score=True, num_threads=1))
