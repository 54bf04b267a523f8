"""Weights of the classes in the loss, so that rare classes count more.

The option is stored as text, which JSON, TOML and the command line all can hold: ``balanced``, or a table in JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gcnsl.checks import check_number
from gcnsl.errors import ArgumentError
from gcnsl.options import NONE

if TYPE_CHECKING:
    from torch import Tensor

BALANCED = "balanced"
_RULE = "must be none, balanced, or positive weights by class, such as yes=5,no=1"


def check_class_weight(value: Any) -> str | None:
    """The option in its one form, from ``None``, ``"balanced"``, a table ``{"yes": 5}`` or a text ``"yes=5,no=1"``."""
    if value is None or (isinstance(value, str) and value in (NONE, BALANCED)):
        return None if value == NONE else value
    table = _read(value) if isinstance(value, str) else value
    if not isinstance(table, Mapping) or not table:
        raise ArgumentError("class_weight", value, _RULE)
    try:
        weights = {str(name): check_number("class_weight", weight, above=0) for name, weight in table.items()}
    except ArgumentError as error:
        raise ArgumentError("class_weight", value, _RULE) from error
    return json.dumps(weights, sort_keys=True, ensure_ascii=False)


def class_weights(option: str | None, y: Tensor, class_names: Sequence[Any]) -> Tensor | None:
    """The weight of each class (C), or ``None`` if all weigh the same.

    ``balanced`` weights a class by n / (C · its number of nodes), as in scikit-learn. Classes without a node, and those
    that a table does not name, have the weight 1.

    Args:
        option: As :func:`check_class_weight` returns it.
        y: Class numbers of the training nodes.
        class_names: The names of the C classes.
    """
    import torch  # here, because the option is checked where it must not take time

    if option is None:
        return None
    names, weights = [str(name) for name in class_names], torch.ones(len(class_names))
    if option == BALANCED:
        counts = torch.bincount(y.cpu(), minlength=len(names))
        present = counts > 0
        weights[present] = len(y) / (int(present.sum()) * counts[present])
        return weights
    for name, weight in json.loads(option).items():
        if name not in names:
            raise ArgumentError("class_weight", option, f"names {name!r}; the classes are {', '.join(names)}")
        weights[names.index(name)] = weight
    return weights


def _read(text: str) -> Any:
    """A table as JSON or as ``yes=5,no=1``; nothing if it is neither."""
    try:
        if text.lstrip().startswith("{"):
            return json.loads(text)
        pairs = [part.rpartition("=") for part in text.split(",")]
        return {name.strip(): float(weight) for name, _, weight in pairs} if all(sign for _, sign, _ in pairs) else None
    except ValueError:
        return None
