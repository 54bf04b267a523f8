"""How a fitted classifier decides: thresholds, sets and a temperature, chosen on nodes that it has not learned from."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted
from torch_geometric.data import Data

from gcnsl.auto import Blend
from gcnsl.auto.ensemble import best_temperature, tempered
from gcnsl.checks import UNLABELLED, check_choice
from gcnsl.errors import InputError
from gcnsl.estimator.given_graph import in_training_order
from gcnsl.methods import Fitted
from gcnsl.training.decisions import (
    ARGMAX,
    Threshold,
    ThresholdRule,
    check_rule,
    choose_threshold,
    decide,
    prediction_sets,
)
from gcnsl.training.metrics import Floats, Ints, choose_metric

ENOUGH_FOR_TEMPERATURE = 20
"""A temperature is not chosen on fewer nodes."""
_NOT_ABOUT_DECISIONS = (None, "average-precision")


class HeldOut(NamedTuple):
    """Numbers of labelled nodes (v), and their probabilities by models that had not learned from them (v × C).

    The kind is ``"validation"`` or ``"out-of-fold"``.
    """

    nodes: Ints
    probabilities: Floats
    kind: str


def nodes_in_words(nodes: int, kind: str) -> str:
    """A number of nodes of a kind: ``"test"``, ``"validation"`` or ``"out-of-fold"``."""
    out_of_fold = "labelled nodes, each predicted by models that had not learned from it"
    return f"{nodes:,} {out_of_fold if kind == 'out-of-fold' else f'{kind} nodes'}"


def held_out(classifier: Deciding, everywhere: Floats | None = None) -> HeldOut:
    """The held-out nodes; ``everywhere`` is what ``classifier.predict_proba()`` returns (n × C), if it is at hand."""
    judged = classifier.fitted_.out_of_fold if isinstance(classifier.fitted_, Blend) else None
    validation = np.flatnonzero(classifier.val_mask_)
    if judged is not None:
        kind = "validation" if len(validation) else "out-of-fold"
        return HeldOut(judged.nodes.numpy(), judged.probabilities.numpy(), kind)
    if not len(validation):
        raise InputError("there is no node to measure on, since all labels were learned from: label other nodes")
    everywhere = classifier.predict_proba() if everywhere is None else everywhere
    return HeldOut(validation, everywhere[validation], "validation")


class Deciding:
    """The part of :class:`gcnsl.NodeClassifier` that makes decisions of probabilities."""

    classes_: NDArray[Any]
    y_: Ints
    train_mask_: NDArray[np.bool_]
    val_mask_: NDArray[np.bool_]
    test_mask_: NDArray[np.bool_]
    fitted_: Fitted | Blend
    graph_: Data
    threshold: str | float | None
    threshold_: Threshold | None
    temperature_: float
    _judged: HeldOut | None
    options: dict[str, Any]
    predict_proba: Callable[..., NDArray[Any]]

    def decide(self, probabilities: NDArray[Any]) -> NDArray[np.int64]:
        """The numbers of the classes (n) that are predicted with these probabilities (n × C)."""
        return decide(probabilities, self.threshold_)

    def set_threshold(
        self, rule: str | float | None = "auto", *, positive: Any = None, among: NDArray[Any] | None = None
    ) -> Threshold | None:
        """Choose the probability from which on a node is predicted to be of a class; it is kept as ``threshold_``.

        It is chosen on the labelled nodes of :meth:`held_out`. Training is not repeated.

        >>> classifier.set_threshold("precision=.9", positive="fraud").recall              # doctest: +SKIP

        Args:
            rule: ``"f1"`` for the largest F1; ``"precision=.9"`` or ``"recall=.8"`` for at least this share;
                ``"top=100"`` for at most 100 alerts among the nodes whose class training did not know;
                ``"cost=fn:10,fp:1"`` for the smallest cost of missed nodes and false alarms; a probability; ``None``
                for the likeliest class; ``"auto"`` as for the constructor's ``threshold``.
            positive: The class; by default the rarer of two.
            among: Probabilities of the nodes that ``"top=100"`` is about (u × C); by default those of the training
                graph.
        """
        check_is_fitted(self)
        classes, number = [str(c) for c in self.classes_], positive_of(self)
        if positive is not None:
            check_choice("positive", str(positive), classes)
            number = classes.index(str(positive))
        if rule == "auto":
            rare = choose_metric(self.y_, classes).rare
            number = rare if number is None else number
            is_rare = rare is not None and self.options.get("metric") in _NOT_ABOUT_DECISIONS
            rule = "f1" if is_rare or positive is not None else None
        if rule is None or rule in ARGMAX:
            self.threshold_ = None
            return None
        if number is None:
            check_rule(rule, classes)
        assert number is not None
        known, wanted_rule = self.held_out(), ThresholdRule.read(rule)
        is_positive = self.y_[known.nodes] == number
        if wanted_rule.kind == "top" and among is None:
            among = self.predict_proba()[self.y_ == UNLABELLED]
        unknown = among[:, number] if among is not None and len(among) else None
        probability = known.probabilities[:, number]
        self.threshold_ = None
        if rule != "f1" or is_positive.any():
            self.threshold_ = choose_threshold(wanted_rule, probability, is_positive, positive=number, unknown=unknown)
        return self.threshold_

    def held_out(self) -> HeldOut:
        """Labelled nodes of the training graph, and their probabilities from models that had not learned from them.

        These are validation nodes, or those of an ensemble's folds.
        """
        check_is_fitted(self)
        if self._judged is None:
            self._judged = held_out(self)
        return self._judged

    def predict_set(
        self,
        X: Any = None,
        *,
        coverage: float = 0.9,
        by_class: bool = False,
        edge_index: Any = None,
        edge_weight: Any = None,
    ) -> NDArray[np.bool_]:
        """Sets that hold the true class in a wanted share of cases (n × C, in the order of ``classes_``).

        Split-conformal prediction on the nodes of :meth:`held_out`, see
        :func:`gcnsl.training.decisions.prediction_sets`. The share is guaranteed for nodes that are exchangeable with
        these, as far as these had no say in when training ends or, for an ensemble, in its weights.

        Args:
            X: As in :meth:`predict`, with ``edge_index`` and ``edge_weight``.
            coverage: The wanted share.
            by_class: Whether it is to hold for the nodes of each class by themselves; needs more labels.
        """
        probabilities = self.predict_proba(X, edge_index=edge_index, edge_weight=edge_weight)
        return self.sets_of(probabilities, coverage, by_class=by_class)

    def sets_of(self, probabilities: NDArray[Any], coverage: float, *, by_class: bool = False) -> NDArray[np.bool_]:
        """The same for nodes with these probabilities (n × C)."""
        known = self.held_out()
        return prediction_sets(known.probabilities, self.y_[known.nodes], probabilities, coverage, by_class=by_class)

    def used_for(self, data: Data | None = None) -> NDArray[Any]:
        """What each node was for (n): ``training``, ``validation``, ``test``, ``unlabelled`` or ``new``.

        ``data`` is the graph as it has grown, in its own order; ``None`` for the training graph.
        """
        check_is_fitted(self)
        place = np.arange(len(self.y_)) if data is None else in_training_order(self.graph_, data)[1]
        masks = {"training": self.train_mask_, "validation": self.val_mask_, "test": self.test_mask_}
        uses = np.select(list(masks.values()), list(masks), "unlabelled").astype(object)
        return np.append(uses, ["new"] * (len(place) - len(uses)))[place]

    def _prepare_decisions(self, data: Data) -> None:
        """Choose what a fitted classifier decides by, and keep which nodes of its graph had a label held back."""
        self.test_mask_ = (data.y != UNLABELLED).cpu().numpy() & (self.y_ == UNLABELLED)
        if not isinstance(self.fitted_, Blend):
            logits, nodes = self.fitted_.logits(), np.flatnonzero(self.val_mask_)
            self.temperature_ = chosen_temperature(logits.softmax(dim=1).numpy()[nodes], self.y_[nodes])
            self._judged = held_out(self, (logits / self.temperature_).softmax(dim=1).numpy())
        self.set_threshold(self.threshold)


def positive_of(classifier: Deciding) -> int | None:
    """The number of the class that is looked for: that of the threshold, or the rarer of two; else ``None``."""
    if classifier.threshold_ is not None:
        return classifier.threshold_.positive
    if len(classifier.classes_) != 2:
        return None
    return int(np.bincount(classifier.y_[classifier.y_ != UNLABELLED], minlength=2).argmin())


def chosen_temperature(probabilities: Floats, y: Ints, *, folds: int = 5) -> float:
    """The temperature of nodes with these probabilities (v × C) and classes (v), or 1 if none is surely better.

    It has to lower the log loss on nodes that it was not chosen on, by more than the standard error of the difference.
    """
    if len(y) < ENOUGH_FOR_TEMPERATURE:
        return 1.0
    gains = np.empty(len(y))
    fold = np.random.default_rng(0).permutation(len(y)) % folds
    for number in range(folds):
        inside, rows = fold == number, np.flatnonzero(fold == number)
        warmer = tempered(probabilities[rows], best_temperature(probabilities[~inside], y[~inside]))
        own, before = warmer[np.arange(len(rows)), y[rows]], probabilities[rows, y[rows]]
        gains[rows] = np.log(own.clip(1e-7)) - np.log(before.clip(1e-7))
    surely = gains.mean() > gains.std(ddof=1) / math.sqrt(len(y))
    return best_temperature(probabilities, y) if surely else 1.0
