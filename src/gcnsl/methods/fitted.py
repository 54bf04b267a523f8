"""Fit a method to a split. Every command, estimator and experiment trains in this way."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn
from torch_geometric.data import Data

from gcnsl.errors import InputError, Interrupted
from gcnsl.methods.prepared import Prepared
from gcnsl.training import History, measure, predict_logits, seeded, train
from gcnsl.training.metrics import most_probable


@dataclass(frozen=True)
class Fitted:
    """A model with the weights of its best epoch, the method and graph it was trained with, and all epochs' values."""

    prepared: Prepared
    model: nn.Module
    history: History

    @property
    def graph(self) -> Data:
        """The training graph."""
        return self.prepared.graph

    def logits(self) -> Tensor:
        """Logits of the training graph's nodes (n × C), on the CPU."""
        with self.prepared.threads():
            return _usable(predict_logits(self.model, self.prepared.inputs).cpu())

    def grown_logits(self, graph: Data) -> Tensor:
        """Logits of a graph whose first nodes are those of the training graph, on the CPU."""
        return grown_logits([self], graph)[0]

    def measure(self, mask: Tensor) -> dict[str, float]:
        """All metrics on the nodes of a mask, by name (:data:`gcnsl.training.METRICS`)."""
        return measure(self.logits()[mask].softmax(dim=1).numpy(), self.graph.y[mask].numpy())

    def accuracy(self, masks: Mapping[str, Tensor]) -> dict[str, float]:
        """Accuracy on the nodes of each mask, by name."""
        correct = most_probable(self.logits().softmax(dim=1).numpy()) == self.graph.y.numpy()
        return {name: float(correct[mask.numpy()].mean()) for name, mask in masks.items()}


def grown_logits(fits: Sequence[Fitted], graph: Data) -> list[Tensor]:
    """The same of several models that share their inputs, which are prepared once."""
    prepared = fits[0].prepared
    with prepared.threads():
        inputs, options = prepared.grown_inputs(graph)
        return [_usable(predict_logits(fitted.model, inputs, **options).cpu()) for fitted in fits]


def _usable(logits: Tensor) -> Tensor:
    """The same logits; raises an error if they make no probabilities."""
    if logits.softmax(dim=1).isnan().any():
        raise InputError(
            "the model predicts values that are not finite: features of new nodes are too large, or its weights are "
            "damaged; scale the features as in training, or train it again"
        )
    return logits


def fit(prepared: Prepared, *, seed: int, **options: Any) -> Fitted:
    """Train a method on a prepared graph with labels, which several runs can share.

    The seed is that of the weights and of dropout. The options are ``train_mask``, ``val_mask`` and others that
    :func:`gcnsl.training.train` explains. If it is interrupted, the ``so_far`` of the exception is what would have been
    returned, with the best epoch so far.
    """
    settings, graph = prepared.method.training, prepared.graph
    options |= {"settings": settings, "seed": seed, "class_names": graph.class_names, "record": True}
    with prepared.threads():
        model = initial_model(prepared, seed)
        try:
            history = train(model, prepared.inputs, graph.y, **options)
        except Interrupted as interruption:
            so_far = interruption.so_far and Fitted(prepared, model, interruption.so_far)
            raise Interrupted(str(interruption), so_far) from None
    return Fitted(prepared, model, history)


def initial_model(prepared: Prepared, seed: int) -> nn.Module:
    """The model before training with this seed."""
    with seeded(seed):
        return prepared.build()
