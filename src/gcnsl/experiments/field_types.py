"""Whether the values of a dataclass that was read from a file are of the types that it declares."""

from __future__ import annotations

import functools
import sys
import types
import typing
from typing import Any, Literal, Union

_declared = functools.cache(typing.get_type_hints)


def check_fields(record: Any) -> None:
    """Raise a ``ValueError`` that names the first field whose value is not of the declared type."""
    for name, kind in _declared(type(record)).items():  # type: ignore[arg-type]
        value = getattr(record, name)
        if not fits(value, kind):
            raise ValueError(f"{name} is {value!r}")


def fits(value: Any, kind: Any) -> bool:
    """Whether a value, with what a dict or list holds, is of a declared type; numbers are finite and not Booleans."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin in (Union, types.UnionType):
        return any(fits(value, one) for one in inner)
    if origin is Literal:
        return value in inner
    if origin is dict and isinstance(value, dict):
        return all(fits(key, inner[0]) and fits(one, inner[1]) for key, one in value.items())
    if origin is list and isinstance(value, list):
        return all(fits(one, inner[0]) for one in value)
    if kind in (int, float):
        is_number = isinstance(value, int | float if kind is float else int) and not isinstance(value, bool)
        return is_number and abs(value) <= sys.float_info.max
    return kind is Any or isinstance(value, origin or kind)
