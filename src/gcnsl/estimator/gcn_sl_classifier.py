"""GCNSLClassifier: GCN-SL with its options by name."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, cast

from gcnsl.errors import InputError
from gcnsl.estimator.documented import options_of, with_options_of
from gcnsl.estimator.node_classifier import NodeClassifier
from gcnsl.methods import METHODS
from gcnsl.nn.config import (
    AdjacencyNorm,
    FeatureNorm,
    GCNSLConfig,
    Merge,
    SpectralMethod,
    SpectralScale,
    Standardize,
)
from gcnsl.training import Checkpoint, Epoch, TrainingSettings
from gcnsl.training.settings import Monitor, Optimizer

_BY_MERGE = {"concat": "gcn-sl-cc", "average": "gcn-sl-av"}
_TRAINING = cast(TrainingSettings, METHODS["gcn-sl-cc"].training)


@with_options_of("Options:\n\n" + options_of(METHODS["gcn-sl-cc"].described()))
class GCNSLClassifier(NodeClassifier):
    """Classify the nodes of a graph with GCN-SL, from the labels of some of them.

    The same as :class:`gcnsl.NodeClassifier` with ``method="gcn-sl"``, whose arguments and attributes it has, but with
    GCN-SL's options as arguments of their own.
    """

    def __init__(
        self,
        *,
        hidden_channels: int = GCNSLConfig.hidden_channels,
        similarity_channels: int = GCNSLConfig.similarity_channels,
        rounds: int = GCNSLConfig.rounds,
        epsilon: float = GCNSLConfig.epsilon,
        merge: Merge = GCNSLConfig.merge,
        dropout: float = GCNSLConfig.dropout,
        use_adjacency: bool = GCNSLConfig.use_adjacency,
        use_reconnected: bool = GCNSLConfig.use_reconnected,
        use_spectral: bool = GCNSLConfig.use_spectral,
        n_components: int = GCNSLConfig.n_components,
        n_anchors: int = GCNSLConfig.n_anchors,
        spectral_method: SpectralMethod = GCNSLConfig.spectral_method,
        spectral_scale: SpectralScale = GCNSLConfig.spectral_scale,
        feature_norm: FeatureNorm = GCNSLConfig.feature_norm,
        standardize: Standardize = GCNSLConfig.standardize,
        feature_shift: float = GCNSLConfig.feature_shift,
        self_loops: bool = GCNSLConfig.self_loops,
        adjacency_norm: AdjacencyNorm = GCNSLConfig.adjacency_norm,
        lr: float = _TRAINING.lr,
        weight_decay: float = _TRAINING.weight_decay,
        epochs: int = _TRAINING.epochs,
        patience: int = _TRAINING.patience,
        monitor: Monitor = _TRAINING.monitor,
        optimizer: Optimizer = _TRAINING.optimizer,
        plateau_factor: float | None = _TRAINING.plateau_factor,
        plateau_patience: int = _TRAINING.plateau_patience,
        tolerance: float | None = _TRAINING.tolerance,
        evaluate_every: int | None = _TRAINING.evaluate_every,
        class_weight: Mapping[str, float] | str | None = _TRAINING.class_weight,
        validation_fraction: float = 0.4,
        random_state: Any = 0,
        device: str = "auto",
        minutes: float | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: int = Checkpoint.every,
        on_epoch: Callable[[Epoch], None] | None = None,
    ) -> None:
        self.__dict__.update({name: value for name, value in locals().items() if name not in ("self", "__class__")})

    @property
    def options(self) -> dict[str, Any]:
        """The hyper-parameters by name."""
        return {name: getattr(self, name) for name in (*GCNSLConfig.names(), *TrainingSettings.names())}

    @options.setter
    def options(self, options: dict[str, Any]) -> None:
        self.__dict__.update(options)

    @property
    def method(self) -> str:
        """``"gcn-sl-cc"`` or ``"gcn-sl-av"``, by ``merge``."""
        GCNSLConfig.check(merge=self.merge)
        return _BY_MERGE[self.merge]

    @method.setter
    def method(self, name: str) -> None:
        if name not in _BY_MERGE.values():
            raise InputError(f"the model is of {name}, not of GCN-SL: load it with NodeClassifier")
