"""Hyper-parameters that explain and check themselves: each says its type, range and meaning once, where it is declared.

    @dataclass(frozen=True)
    class Settings(Options):
        lr: float = option(0.01, "Learning rate.", above=0)

refuses ``Settings(lr="fast")`` and ``Settings(lr=0)``, and ``Settings.described()`` lists its hyper-parameters for people.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields, replace
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

import numpy as np
from typing_extensions import Self

from gcnsl.checks import check_choice, check_number, check_whole
from gcnsl.errors import ArgumentError, InputError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

NONE = "none"
"""What stands for ``None`` where a value is written as text; TOML has no word for it."""
_LARGEST = 2**31 - 1
"""No whole number is larger unless its option says so: torch would fail on it with an error of its own."""


def option(
    default: Any,
    meaning: str,
    *,
    least: float | None = None,
    most: float | None = None,
    above: float | None = None,
    below: float | None = None,
) -> Any:
    """Declare a field of :class:`Options`: its default, a sentence about it, and the bounds of a number."""
    bounds = {"least": least, "above": above, "most": most, "below": below}
    given = {name: bound for name, bound in bounds.items() if bound is not None}
    return field(default=default, metadata={"meaning": meaning, "bounds": given})


class Option(NamedTuple):
    """What there is to know about one hyper-parameter."""

    name: str
    meaning: str
    range: str
    """In words, e.g. ``"whole number >= 1"``."""
    default: Any


@dataclass(frozen=True)
class Options:
    """A set of hyper-parameters: a frozen dataclass whose fields are declared with :func:`option`."""

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            object.__setattr__(self, name, self._checked(name, value))

    @classmethod
    def check(cls, **values: Any) -> None:
        """Refuse a value that its option does not allow.

        Raises:
            InputError: If there is no such option, or the value is of another type or out of range.
        """
        for name, value in values.items():
            cls._checked(name, value)

    @classmethod
    def described(cls) -> list[Option]:
        """Every hyper-parameter, in the order of declaration."""
        return [
            Option(each.name, each.metadata["meaning"], _range_in_words(cls, each.name), each.default)
            for each in fields(cls)
            if each.default is not MISSING
        ]

    @classmethod
    def names(cls) -> list[str]:
        """The names of the hyper-parameters."""
        return [each.name for each in fields(cls)]

    def changed(self, **values: Any) -> Self:
        """The same with other values."""
        return replace(self, **{name: self._checked(name, value) for name, value in values.items()})

    @classmethod
    def _checked(cls, name: str, value: Any) -> Any:
        kinds, bounds = _kinds(cls).get(name), _bounds(cls).get(name, {})
        if kinds is None:
            raise InputError(f"{name}: there is no such option; there are {', '.join(cls.names())}")
        value = value.item() if isinstance(value, np.generic) else value
        if NoneType in kinds and (value is None or value == NONE):
            return None
        for kind in kinds:
            if get_origin(kind) is Literal:
                return check_choice(name, value, get_args(kind))
            if get_origin(kind) is tuple:
                return _whole_numbers(name, value)
            if kind is bool:
                return _truth(name, value)
            if kind is int:
                return check_whole(name, value, **{"most": _LARGEST, **_whole(bounds)})
            if kind is float:
                check_number(name, value, **bounds)
        return value


def read_assignments(texts: Mapping[str, str]) -> dict[str, Any]:
    """Values as TOML writes them, by name: ``0.1``, ``true``, ``[0, 1, 2]``; what TOML can't read is a string."""
    return {name: _read(text) for name, text in texts.items()}


def _read(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _truth(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise ArgumentError(name, value, "must be true or false")
    return value


def _whole_numbers(name: str, value: Any) -> tuple[int, ...]:
    if not isinstance(value, tuple | list):
        raise ArgumentError(name, value, "must be a list of whole numbers, such as [0, 1, 2]")
    return tuple(check_whole(name, each, most=_LARGEST) for each in value)


def _whole(bounds: Mapping[str, float]) -> dict[str, int]:
    return {name: int(bound) for name, bound in bounds.items()}


@cache
def _kinds(owner: type[Options]) -> dict[str, tuple[Any, ...]]:
    """The types that each field allows."""
    return {name: tuple(_parts(hint)) for name, hint in get_type_hints(owner).items()}


@cache
def _bounds(owner: type[Options]) -> dict[str, dict[str, float]]:
    return {each.name: each.metadata.get("bounds", {}) for each in fields(owner)}


def _parts(hint: Any) -> Iterator[Any]:
    if get_origin(hint) in (Union, UnionType):
        yield from get_args(hint)
    else:
        yield hint


def _range_in_words(owner: type[Options], name: str) -> str:
    signs = {"least": ">=", "above": ">", "most": "<=", "below": "<"}
    bounds = " and ".join(f"{signs[which]} {bound:g}" for which, bound in _bounds(owner)[name].items())
    words = []
    for kind in _kinds(owner)[name]:
        if get_origin(kind) is Literal:
            words += list(get_args(kind))
        elif get_origin(kind) is tuple:
            words.append("list of whole numbers")
        else:
            text = {bool: "true or false", int: "whole number", float: "number", NoneType: NONE}[kind]
            words.append(f"{text} {bounds}".strip() if kind in (int, float) else text)
    return ", ".join(words)
