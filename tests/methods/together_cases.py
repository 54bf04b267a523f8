"""What the processes of a test do: train some methods on a small directed graph, and continue interrupted training."""

import os
import signal
from pathlib import Path
from typing import Any

import torch

from gcnsl import NodeClassifier, synthetic
from gcnsl.datasets import with_random_split
from gcnsl.errors import Interrupted
from gcnsl.methods.together import follow, leading
from gcnsl.sharding import process_group

EPOCHS = 20
FEW = {"epochs": EPOCHS, "patience": EPOCHS}
HEADS = {"neighbours_heads": 1, "features_heads": 1, "epsilon": 0.6, "mean_degree": None}
DRY = {"dropout": 0.0, "input_dropout": 0.0}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "gcn-sl-plus": ("gcn-sl-plus", HEADS | {"direction": "both", "link_lr": 0.01, "link_dropout": 0.3}),
    "gcn-sl-plus by degree": ("gcn-sl-plus", HEADS | {"mean_degree": 8.0, "evaluate_every": 3}),
    "gcn-sl-plus, dry": ("gcn-sl-plus", HEADS | DRY | {"direction": "both"}),
    "gcn-sl-cc": ("gcn-sl-cc", {"epsilon": 0.7, "n_components": 5}),
    "gcn-sl-cc, dry": ("gcn-sl-cc", {"epsilon": 0.7, "n_components": 5, "dropout": 0.0}),
    "gcn-sl-av, dry": ("gcn-sl-av", {"epsilon": 0.7, "n_components": 5, "dropout": 0.0}),
    "gcn": ("gcn", {"norm": "layer", "residual": True, "monitor": "roc-auc"}),
    "gcn, dry": ("gcn", {"dropout": 0.0}),
    "mlp": ("mlp", {"class_weight": "balanced"}),
    "mlp, dry": ("mlp", {"dropout": 0.0}),
}


def graph() -> Any:
    """131 nodes, which no number of processes divides evenly."""
    data = with_random_split(synthetic(n=131, h=0.4, classes=3, degree=5, features=12, seed=0), seed=0)
    data.arc_index = data.edge_index[:, torch.arange(data.num_edges) % 3 > 0]
    return data


def train_case(name: str, **arguments: Any) -> dict[str, list[float]]:
    """The values of all epochs."""
    method, options = CASES[name]
    classifier = NodeClassifier(method, **(FEW | options), device="cpu", **arguments).fit_graph(graph())
    values = dict(classifier.history_.values)
    values["probabilities"] = classifier.predict_proba().flatten().tolist()
    return values


def train_cases(names: list[str]) -> dict[str, dict[str, list[float]]] | None:
    """The values of the first process; the others follow it."""
    if process_group.rank() > 0:
        return follow("cpu")
    with leading():
        return {name: train_case(name) for name in names}


def interrupt(checkpoint: Path, after: int) -> tuple[str, int] | None:
    """Interrupt the first process after some epochs; what it says, and the number of epochs until then."""
    if process_group.rank() > 0:
        return follow("cpu")

    def stop(epoch: Any) -> None:
        if epoch.number == after:
            os.kill(os.getpid(), signal.SIGTERM)

    with leading():
        try:
            train_case("gcn-sl-plus", checkpoint=checkpoint, on_epoch=stop)
        except Interrupted as interruption:
            return str(interruption), len(interruption.so_far.history)
    return "not interrupted", EPOCHS


def go_on(checkpoint: Path) -> dict[str, list[float]] | None:
    """Continue from the checkpoint."""
    if process_group.rank() > 0:
        return follow("cpu")
    with leading():
        return train_case("gcn-sl-plus", checkpoint=checkpoint)
