"""Checks of single arguments. A value that is refused gets one sentence with its name, the value and the bounds."""

import math
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

from gcnsl.errors import ArgumentError

UNLABELLED = -1
"""The label of a node whose class is not known, as in scikit-learn's semi-supervised classifiers."""

EPSILON_BOUNDS = {"least": 0.0, "most": 1.0}
"""The bounds of ε, which is a cosine."""


def check_choice(name: str, value: Any, choices: Iterable[str], *, or_else: str = "") -> Any:
    """Return a value that is one of the choices; ``or_else`` is added to the message, for what else is allowed."""
    choices = tuple(choices)
    if not isinstance(value, str) or value not in choices:
        raise ArgumentError(name, value, f"must be one of {', '.join(choices)}{or_else}")
    return value


def check_whole(name: str, value: Any, *, least: int = 0, most: int | None = None, why: str = "") -> int:
    """Return a whole number as an ``int``; both bounds are included."""
    bounds = f">= {least}" if most is None else f"from {least} to {most}"
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise ArgumentError(name, value, f"must be a whole number {bounds}")
    number = int(value)
    if number < least or (most is not None and number > most):
        raise ArgumentError(name, value, f"must be {bounds}{why and f': {why}'}")
    return number


def check_number(
    name: str,
    value: Any,
    *,
    least: float | None = None,
    most: float | None = None,
    above: float | None = None,
    below: float | None = None,
    why: str = "",
) -> float:
    """Return a finite number as a ``float``; ``least`` and ``most`` are included, ``above`` and ``below`` are not."""
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    try:
        number = float(value) if is_number else math.nan
    except OverflowError:  # an integer that is too large for a float
        number = math.inf
    if (
        -math.inf < number < math.inf  # unlike math.isfinite, torch.compile can trace it
        and (least is None or number >= least)
        and (most is None or number <= most)
        and (above is None or number > above)
        and (below is None or number < below)
    ):
        return number
    bounds = {">=": least, ">": above, "<=": most, "<": below}
    rule = " and ".join(f"{sign} {bound:g}" for sign, bound in bounds.items() if bound is not None)
    if not is_number:
        raise ArgumentError(name, value, f"must be a number {rule}".rstrip())
    if not math.isfinite(number):
        raise ArgumentError(name, value, f"must be finite{rule and f' and {rule}'}")
    raise ArgumentError(name, value, f"must be {rule}{why and f': {why}'}")


def check_epsilon(epsilon: Any) -> float:
    """Return ε, the smallest cosine similarity that joins two nodes."""
    return check_number("epsilon", epsilon, **EPSILON_BOUNDS, why="it is the smallest cosine similarity that is kept")
