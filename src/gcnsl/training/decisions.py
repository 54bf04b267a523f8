"""From probabilities to decisions: a threshold for one class, and sets of classes with a coverage.

Both are chosen on labelled nodes whose labels the model has not learned from: validation nodes, or out of fold. What
holds for these nodes holds for others as far as they are exchangeable with them, that is, as far as it does not matter
which nodes were labelled.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gcnsl.errors import ArgumentError
from gcnsl.training.metrics import Floats, Ints, most_probable

RULES = "f1, precision=SHARE, recall=SHARE, top=NUMBER, cost=fn:NUMBER,fp:NUMBER, a probability, or none"
BINS = 200
"""The most points of a curve that are shown."""
ARGMAX = ("none", "argmax")
"""Rules for no threshold, as they are written in text."""


@dataclass(frozen=True)
class ThresholdRule:
    """What a threshold is chosen for, as it is written: ``f1``, ``precision=.9``, ``top=100``, ``cost=fn:10,fp:1``."""

    kind: str
    value: float = 0.0
    miss: float = 1.0
    alarm: float = 1.0

    @classmethod
    def read(cls, text: object) -> ThresholdRule:
        """Read a rule; an ArgumentError says what can be written."""
        kind, _, value = str(text).strip().lower().replace(" ", "").partition("=")
        try:
            if kind == "f1" and not value:
                return cls(kind)
            if kind in ("precision", "recall") and 0 < float(value) <= 1:
                return cls(kind, float(value))
            if kind == "top" and int(value) > 0:
                return cls(kind, int(value))
            if kind == "cost":
                costs = {name: float(cost) for name, cost in (part.split(":") for part in value.split(","))}
                if costs.keys() == {"fn", "fp"} and min(costs.values()) > 0 and math.isfinite(sum(costs.values())):
                    return cls(kind, 0.0, costs["fn"], costs["fp"])
            if not value and 0 <= float(kind) <= 1:
                return cls("probability", float(kind))
        except ValueError:
            pass
        raise ArgumentError("threshold", text, f"is no rule: write {RULES}")

    def __str__(self) -> str:
        if self.kind == "cost":
            return f"cost=fn:{self.miss:g},fp:{self.alarm:g}"
        if self.kind == "probability":
            return f"{self.value:g}"
        return self.kind if self.kind == "f1" else f"{self.kind}={self.value:g}"


def check_rule(rule: object, classes: Sequence[Any] | None = None) -> None:
    """Refuse what is no rule for a threshold, or needs the name of one of more than two classes."""
    if rule is not None and rule != "auto" and rule not in ARGMAX:
        ThresholdRule.read(rule)
        if classes is not None and len(classes) != 2:
            told = f"is for one class against the rest: name it as positive, one of {', '.join(map(str, classes))}"
            raise ArgumentError("threshold", rule, told)


@dataclass(frozen=True)
class Curve:
    """What every threshold would find: alerts in order of probability, one entry for each distinct probability.

    Attributes:
        thresholds: In descending order; a node with at least this probability is an alert (k).
        alerts: Number of alerts (k).
        found: Number of alerts that are of the class (k).
        positives: Number of nodes of the class.
        nodes: Number of nodes.
    """

    thresholds: Floats
    alerts: Ints
    found: Ints
    positives: int
    nodes: int

    @classmethod
    def of(cls, probability: Floats, is_positive: NDArray[np.bool_]) -> Curve:
        """The curve of nodes with these probabilities of the class (v), of which some are of it (v)."""
        order = np.argsort(-probability, kind="stable")
        ranked = probability[order]
        last = np.flatnonzero(np.append(ranked[1:] != ranked[:-1], True)) if len(ranked) else np.empty(0, np.int64)
        found = np.cumsum(is_positive[order])
        return cls(ranked[last], last + 1, found[last].astype(np.int64), int(is_positive.sum()), len(ranked))

    @property
    def precision(self) -> Floats:
        """Share of the alerts that are of the class (k)."""
        return self.found / self.alerts

    @property
    def recall(self) -> Floats:
        """Share of the class that is an alert (k); NaN if no node is of it."""
        return self.found / self.positives if self.positives else np.full(len(self.found), np.nan)

    @property
    def f1(self) -> Floats:
        """2 found / (alerts + positives) (k)."""
        return 2 * self.found / (self.alerts + self.positives)

    def at(self, threshold: float) -> tuple[int, int]:
        """The numbers of alerts and of those that are of the class, of nodes with at least this probability."""
        place = int(np.searchsorted(-self.thresholds, -threshold, side="right")) - 1
        return (0, 0) if place < 0 else (int(self.alerts[place]), int(self.found[place]))

    def points(self, most: int = BINS) -> list[tuple[float, int, int]]:
        """At most so many thresholds with their alerts and those of the class, closer together where alerts are few."""
        places = np.arange(len(self.thresholds))
        if len(places) > most:
            places = np.unique(np.append(np.geomspace(1, len(places), most).astype(int) - 1, len(places) - 1))
        parts = (self.thresholds[places], self.alerts[places], self.found[places])
        return list(zip(*(part.tolist() for part in parts), strict=True))


@dataclass(frozen=True)
class Threshold:
    """A threshold on the probability of one class, and what it finds on the nodes that it was chosen on.

    Attributes:
        rule: What it was chosen for.
        positive: The number of the class.
        value: A node with at least this probability is predicted to be of the class.
        alerts, found, positives, nodes: Numbers of nodes, see :class:`Curve`.
        met: Whether the rule can be kept on these nodes; otherwise the threshold comes as close as possible.
    """

    rule: str
    positive: int
    value: float
    alerts: int
    found: int
    positives: int
    nodes: int
    met: bool = True

    @property
    def precision(self) -> float:
        """Share of the alerts that are of the class; NaN without alerts."""
        return self.found / self.alerts if self.alerts else math.nan

    @property
    def recall(self) -> float:
        """Share of the class that is an alert; NaN without positives."""
        return self.found / self.positives if self.positives else math.nan

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)


def choose_threshold(
    rule: ThresholdRule,
    probability: Floats,
    is_positive: NDArray[np.bool_],
    *,
    positive: int = 1,
    unknown: Floats | None = None,
) -> Threshold:
    """Choose the threshold for a class by a rule, on nodes with these probabilities of it (v).

    - ``f1``: the largest F1.
    - ``precision=p``: the most alerts of which a share of at least p is right.
    - ``recall=r``: the fewest alerts that find a share of at least r.
    - ``top=k``: at most k alerts, as many as ties allow, among nodes whose class is ``unknown``.
    - ``cost=fn:a,fp:b``: the smallest a · (missed) + b · (false alarms); no alert at all may be the cheapest.
    - a number: this probability.

    Args:
        rule: What is wanted.
        probability: Of the class, for nodes whose class is known (v).
        is_positive: Which of them are of the class (v).
        positive: Its number.
        unknown: Probabilities of the nodes that are to be decided on (u); by default those of the known ones.
    """
    curve, met = Curve.of(probability, is_positive), True
    cost = rule.miss * (curve.positives - curve.found) + rule.alarm * (curve.alerts - curve.found)
    decided = curve
    if rule.kind == "precision":
        fits = np.flatnonzero((curve.precision >= rule.value) & (curve.found > 0))
        met = len(fits) > 0
        place = int(fits[-1]) if met else int(np.argmax(curve.precision)) if len(curve.precision) else -1
    elif rule.kind == "recall":
        fits = np.flatnonzero(curve.found >= rule.value * curve.positives - 1e-9)
        place, met = int(fits[0]) if len(fits) else -1, curve.positives > 0
    elif rule.kind == "top":
        decided = curve if unknown is None else Curve.of(unknown, np.zeros(len(unknown), dtype=bool))
        place = int(np.searchsorted(decided.alerts, rule.value, side="right")) - 1
    elif rule.kind == "cost":
        place = int(np.argmin(cost)) if len(cost) and cost.min() < rule.miss * curve.positives else -1
    else:
        place, met = int(np.argmax(curve.f1)) if len(curve.f1) else -1, curve.positives > 0
    if rule.kind == "probability":
        value, met = rule.value, True
    elif place < 0:
        value = float(np.nextafter(decided.thresholds[0], np.inf)) if len(decided.thresholds) else math.inf
    else:  # midway to the next node that is no alert, as trees split
        value = float(decided.thresholds[place : place + 2].astype(np.float64).mean())
    return Threshold(str(rule), positive, value, *curve.at(value), curve.positives, curve.nodes, met)


def decide(probabilities: Floats, threshold: Threshold | None) -> Ints:
    """The classes (n) of nodes with these probabilities (n × C): the class of the threshold, or else the likeliest.

    Without a threshold it is the likeliest class.
    """
    if threshold is None:
        return most_probable(probabilities)
    others = probabilities.copy()
    others[:, threshold.positive] = -np.inf
    alert = probabilities[:, threshold.positive] >= threshold.value
    return np.where(alert, threshold.positive, most_probable(others)).astype(np.int64)


def check_coverage(coverage: float) -> None:
    """Refuse what is no share of cases."""
    if not isinstance(coverage, (float, np.floating)) or not 0 < coverage < 1:
        raise ArgumentError("coverage", coverage, "is no share between 0 and 1, both excluded")


def prediction_sets(
    known: Floats,
    y: Ints,
    probabilities: Floats,
    coverage: float,
    *,
    by_class: bool = False,
) -> NDArray[np.bool_]:
    r"""Sets of classes of which the true one is in so many cases: split-conformal prediction (n × C, boolean).

    With the scores :math:`s_i = 1 - p_i(y_i)` of m nodes whose class is known, a class c is in the set of a node if
    :math:`1 - p(c) \le q`, q being the :math:`\lceil (m + 1) \cdot coverage \rceil`-th smallest score. If the node is
    exchangeable with the m nodes, its class is in the set with at least this probability. The likeliest class is always
    in the set. With too few nodes for the coverage, sets hold all classes.

    Args:
        known: Probabilities of the nodes whose class is known (m × C).
        y: Their class numbers (m).
        probabilities: Those of the nodes that get a set (n × C).
        coverage: The wanted share, between 0 and 1.
        by_class: Whether it is to hold for the nodes of each class by themselves; needs more labels.
    """
    check_coverage(coverage)
    scores = 1 - known[np.arange(len(y)), y]
    classes = probabilities.shape[1]
    groups = [scores[y == c] for c in range(classes)] if by_class else [scores] * classes
    limits = np.array([_quantile(group, coverage) for group in groups])
    sets: NDArray[np.bool_] = 1 - probabilities <= limits
    sets[np.arange(len(sets)), most_probable(probabilities)] = True
    return sets


def _quantile(scores: Floats, coverage: float) -> float:
    """The score that a share of others does not exceed with certainty about the number of scores, or infinity."""
    rank = math.ceil((len(scores) + 1) * coverage - 1e-9)
    return float(np.partition(scores, rank - 1)[rank - 1]) if rank <= len(scores) else math.inf
