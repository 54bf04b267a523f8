"""Checks of arguments; the error names the argument, its value and the bounds."""

import difflib
import math
import re
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gcnsl.errors import ArgumentError, InputError

UNLABELLED = -1
"""The label of a node whose class is not known, as in scikit-learn's semi-supervised classifiers."""

EPSILON_BOUNDS: dict[str, Any] = {"least": 0.0, "most": 1.0}
"""The bounds of ε, which is a cosine."""
LARGEST = 2**31 - 1
"""The largest whole number, unless a check says otherwise: torch fails on larger ones with an error of its own."""
LARGEST_FLOAT = float(np.finfo(np.float32).max)
"""Features and weights are stored as float32."""


def did_you_mean(value: Any, choices: Iterable[str]) -> str:
    """The end of a message, ``"; did you mean X?"``, if one of the choices is spelled much like the value."""
    wanted, known = str(value).lower(), {choice.lower(): choice for choice in choices}
    inside = [choice for choice in known if len(wanted) > 1 and wanted in choice]
    near = difflib.get_close_matches(wanted, known, n=1) or inside
    return f"; did you mean {known[near[0]]}?" if near else ""


def as_array(values: Any, name: str) -> NDArray[Any]:
    """Anything array-like as a NumPy array; ``name`` is for the message if it is not."""
    try:
        if not hasattr(values, "detach"):
            return np.asarray(values)
        values = values.detach().cpu()  # a tensor
        return np.asarray((values.float() if str(values.dtype) == "torch.bfloat16" else values).numpy())
    except (ValueError, TypeError) as error:
        raise InputError(f"{name} is not an array ({error}): give NumPy, torch or SciPy data") from error


def check_choice(name: str, value: Any, choices: Iterable[str], *, or_else: str = "") -> Any:
    """Return a value that is one of the choices; ``or_else`` is added to the message, for what else is allowed."""
    choices = tuple(choices)
    if not isinstance(value, str) or value not in choices:
        hint = did_you_mean(value, choices) if isinstance(value, str) else ""
        raise ArgumentError(name, value, f"must be one of {', '.join(choices)}{or_else}{hint}")
    return value


def check_whole(name: str, value: Any, *, least: int = 0, most: int | None = None, why: str = "") -> int:
    """Return a whole number as an ``int``; both bounds are included, and ``None`` stands for :data:`LARGEST`."""
    is_whole = isinstance(value, Integral) and not isinstance(value, bool)
    if is_whole and least <= int(value) <= (LARGEST if most is None else most):
        return int(value)
    if most is None and is_whole and int(value) > LARGEST:
        most = LARGEST
    bounds = f">= {least}" if most is None else f"from {least} to {most}"
    raise ArgumentError(
        name, value, f"must be {bounds}{why and f': {why}'}" if is_whole else f"must be a whole number {bounds}"
    )


def check_seed(value: Any, name: str = "seed") -> int:
    """Return a seed that all generators of random numbers take."""
    return check_whole(name, value, most=2**32 - 1)


def check_device(value: Any) -> Any:
    """Return the name of a device, or another value that torch may take for one."""
    if isinstance(value, str) and not re.fullmatch(r"auto|(cpu|cuda)(:\d+)?", value):
        raise ArgumentError("device", value, "must be auto, cpu, cuda or cuda:N")
    return value


def check_generator(value: Any, name: str = "random_state") -> Any:
    """Return a seed, a ``numpy.random.RandomState`` or ``None`` as a ``RandomState``, like scikit-learn."""
    from sklearn.utils import check_random_state  # it takes long to load

    if isinstance(value, Real | str):
        check_seed(value, name)
    try:
        return check_random_state(value)
    except ValueError as error:
        raise ArgumentError(name, value, "must be a seed, a numpy.random.RandomState or None") from error


def check_flag(name: str, value: Any) -> bool:
    """Return a truth value; unlike Python's, the string ``"false"`` is none."""
    if not isinstance(value, bool | np.bool_):
        raise ArgumentError(name, value, "must be true or false")
    return bool(value)


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
