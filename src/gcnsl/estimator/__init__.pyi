"""The exports of gcnsl.estimator for editors and type checkers, written by `python -m tools.stubs`."""

import os
from collections.abc import Callable
from typing import Any, Literal

from gcnsl.estimator.gcn_sl_classifier import GCNSLClassifier as _GCNSLClassifier
from gcnsl.estimator.node_classifier import NodeClassifier

__all__ = ["GCNSLClassifier", "NodeClassifier"]

class GCNSLClassifier(_GCNSLClassifier):
    """Classify the nodes of a graph with GCN-SL, from the labels of some of them.

    Options:
    - feature_norm (none, row, l2; default 'l2'): Divide rows of X by Σ|x| (row) or their length (l2).
    - standardize (auto, always, never; default 'auto'): Give columns other than 0/1 mean 0 and variance 1
      instead; auto does if they are dense and mostly nonzero.
    - hidden_channels (whole number >= 1; default 32): Number of columns of W⁰_X and of W⁰_F (p).
    - similarity_channels (whole number >= 1; default 16): Number of columns of Q (q).
    - rounds (whole number >= 1 and <= 64; default 2): Number of rounds of aggregation over Â (K).
    - epsilon (number >= 0 and <= 1; default 0.95): Smallest cosine similarity in A* (ε).
    - merge (concat, average; default 'concat'): How X W⁰_X and F W⁰_F are merged (GCN-SL_cc, GCN-SL_av).
    - dropout (number >= 0 and < 1; default 0.5): Dropout on X and F, but not in similarities, and before the
      last layer.
    - use_adjacency (true or false; default True): Whether to use the branches over the given graph Â.
    - use_reconnected (true or false; default True): Whether to use the branch over the learned graph A*.
    - use_spectral (true or false; default True): Whether to use the spectral features F.
    - n_components (whole number >= 0; default 25): Number of spectral features (c).
    - n_anchors (whole number >= 1; default 500): Anchors of ESC-ANCH (m).
    - spectral_method (esc-anch, esc, sc; default 'esc-anch'): How F is computed.
    - spectral_scale (unit, sqrt-n; default 'sqrt-n'): Length of the columns of F: 1 or √n.
    - feature_shift (number >= 0; default 0.5): Added to one random feature, after F is computed.
    - self_loops (true or false; default False): Whether Â has a loop at every node.
    - adjacency_norm (symmetric, row; default 'symmetric'): How Â is normalised: D^-1/2 A D^-1/2 or D^-1 A.
    - epochs (whole number >= 1; default 800): Maximum number of epochs.
    - patience (whole number >= 1; default 200): Number of epochs without improvement after which training
      stops.
    - monitor (loss, accuracy, balanced-accuracy, macro-f1, roc-auc, average-precision, log-loss, calibration-
      error; default 'loss'): What has to improve on the validation nodes; between equal values of a metric, the
      loss decides.
    - class_weight (string, none; default None): Weights of the classes in the loss: none, balanced (all classes
      count the same), or such as yes=5,no=1.
    - lr (number > 0; default 0.02): Learning rate.
    - weight_decay (number >= 0; default 0.0005): L2 penalty on the weights.
    - optimizer (adam, sgd; default 'adam'): The optimizer.
    - plateau_factor (number > 0 and < 1, none; default None): Factor for the learning rate after a plateau;
      none for a constant rate.
    - plateau_patience (whole number >= 1; default 50): Number of epochs without improvement before the rate is
      reduced.
    - tolerance (number >= 0, none; default None): Training also ends 50 epochs after the first one whose
      validation loss (or metric) is this close to the best. 0 turns this off; none is 0.01 in graphs of more
      than 32,768 nodes and 0 in others.
    - evaluate_every (whole number >= 1, none; default None): Number of epochs from one evaluation to the next;
      the first and the last epoch are evaluated, too. Only evaluated epochs can be the best. None is 5 in
      graphs of more than 32,768 nodes and 1 in others.
    """

    def __init__(
        self,
        *,
        feature_norm: Literal["none", "row", "l2"] = "l2",
        standardize: Literal["auto", "always", "never"] = "auto",
        hidden_channels: int = 32,
        similarity_channels: int = 16,
        rounds: int = 2,
        epsilon: float = 0.95,
        merge: Literal["concat", "average"] = "concat",
        dropout: float = 0.5,
        use_adjacency: bool = True,
        use_reconnected: bool = True,
        use_spectral: bool = True,
        n_components: int = 25,
        n_anchors: int = 500,
        spectral_method: Literal["esc-anch", "esc", "sc"] = "esc-anch",
        spectral_scale: Literal["unit", "sqrt-n"] = "sqrt-n",
        feature_shift: float = 0.5,
        self_loops: bool = False,
        adjacency_norm: Literal["symmetric", "row"] = "symmetric",
        epochs: int = 800,
        patience: int = 200,
        monitor: Literal[
            "loss",
            "accuracy",
            "balanced-accuracy",
            "macro-f1",
            "roc-auc",
            "average-precision",
            "log-loss",
            "calibration-error",
        ] = "loss",
        class_weight: str | None = None,
        lr: float = 0.02,
        weight_decay: float = 0.0005,
        optimizer: Literal["adam", "sgd"] = "adam",
        plateau_factor: float | None = None,
        plateau_patience: int = 50,
        tolerance: float | None = None,
        evaluate_every: int | None = None,
        validation_fraction: float = 0.4,
        random_state: Any = 0,
        device: str = "auto",
        minutes: float | None = None,
        threshold: str | float | None = "auto",
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: int = 50,
        verbose: bool | int = True,
        on_epoch: Callable[[Any], None] | None = None,
    ) -> None: ...
