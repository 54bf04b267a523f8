"""Hyper-parameters that document and check themselves: all that is known of one is stated once, in its declaration.

    @dataclass(frozen=True)
    class Settings(Options):
        lr: float = option(0.01, "Learning rate.", above=0, search=Log(0.001, 0.05))

``Settings(lr="fast")`` and ``Settings(lr=0)`` raise an error, and ``Settings.described()`` lists the hyper-parameters.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

import numpy as np
from typing_extensions import Self

from gcnsl.checks import check_choice, check_flag, check_number, check_whole, did_you_mean
from gcnsl.errors import ArgumentError, InputError

if TYPE_CHECKING:
    from optuna.trial import BaseTrial

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

parse_toml = tomllib.loads
NONE = "none"
"""Stands for ``None`` where a value is written as text, because TOML has no word for it."""
_WIDTH = 108
"""Of the lines of a docstring, without their indentation."""


class OneOf:
    """A search range: these values."""

    def __init__(self, *values: Any) -> None:
        self.values: tuple[Any, ...] | None = values

    def __call__(self, trial: BaseTrial, name: str) -> Any:
        """The value that a trial of Optuna suggests for the option of this name."""
        return trial.suggest_categorical(name, self.values or ())

    def __str__(self) -> str:
        return ", ".join(in_words(value) for value in self.values or ())


class Steps(OneOf):
    """A search range: numbers in equal steps, both ends included; integers if the ends and the step are."""

    def __init__(self, low: float, high: float, step: float = 1) -> None:
        super().__init__(*(round(low + step * number, 6) for number in range(round((high - low) / step) + 1)))
        self.low, self.high, self.step = low, high, step

    def __call__(self, trial: BaseTrial, name: str) -> float:
        """What a trial suggests."""
        if isinstance(self.low, int) and isinstance(self.high, int) and isinstance(self.step, int):
            return trial.suggest_int(name, self.low, self.high, step=self.step)
        return round(trial.suggest_float(name, self.low, self.high, step=self.step), 6)

    def __str__(self) -> str:
        return f"{self.low:g} to {self.high:g}" + ("" if self.step == 1 else f" in steps of {self.step:g}")


class Log:
    """A search range: numbers of two digits whose logarithm is uniform, too many to be listed as ``values``."""

    values = None

    def __init__(self, low: float, high: float) -> None:
        self.low, self.high = low, high

    def __call__(self, trial: BaseTrial, name: str) -> float:
        """What a trial suggests."""
        return float(f"{trial.suggest_float(name, self.low, self.high, log=True):.2g}")

    def __str__(self) -> str:
        return f"{self.low:g} to {self.high:g} on a logarithmic scale"


Search = OneOf | Log
ALL = OneOf()
"""A search range: all values of an option that is a truth value or has some to choose from."""


def option(
    default: Any, meaning: str, *, search: Search | None = None, of_inputs: bool = False, **bounds: float
) -> Any:
    """Declare a field of :class:`Options`: its default, its meaning, and its search range, if any.

    Bounds of a number are ``least``, ``above``, ``most`` and ``below``. One ``of_inputs`` is no argument of the model's
    constructor: it says how inputs are made.
    """
    metadata = {"meaning": meaning, "bounds": bounds, "search": search, "of_inputs": of_inputs}
    return field(default=default, metadata=metadata)


def redeclared(owner: type[Options], name: str, default: Any, **changes: Any) -> Any:
    """The option of a parent class with another default and, if given, another search range."""
    inherited = next(each for each in fields(owner) if each.name == name)
    return field(default=default, metadata={**inherited.metadata, **changes})


class Option(NamedTuple):
    """The documentation of one hyper-parameter."""

    name: str
    meaning: str
    range: str
    """In words, e.g. ``"whole number >= 1"``."""
    default: Any
    search: Search | None = None


@dataclass(frozen=True)
class Options:
    """A set of hyper-parameters: a frozen dataclass whose fields are declared with :func:`option`."""

    def __post_init__(self) -> None:
        for name in self.names():
            object.__setattr__(self, name, self._checked(name, getattr(self, name)))

    @classmethod
    def check(cls, **values: Any) -> None:
        """Check some of the hyper-parameters.

        Raises:
            InputError: If there is no such option, or a value has the wrong type or is out of range.
        """
        cls().changed(**values)

    @classmethod
    def described(cls) -> list[Option]:
        """Every hyper-parameter, in the order of declaration."""
        described = []
        for each in fields(cls):
            kinds, search = cls._kinds()[each.name], each.metadata["search"]
            if search is ALL:
                search = OneOf(True, False) if kinds == (bool,) else OneOf(*get_args(kinds[0]))
            words = _range_in_words(kinds, each.metadata["bounds"])
            described.append(Option(each.name, each.metadata["meaning"], words, each.default, search))
        return described

    @classmethod
    def names(cls) -> list[str]:
        """The names of the hyper-parameters."""
        return [each.name for each in fields(cls)]

    def changed(self, **values: Any) -> Self:
        """A copy with other values."""
        for name in values:
            if name not in self.names():
                hint = did_you_mean(name, self.names())
                raise InputError(f"{name}: there is no such option; there are {', '.join(self.names())}{hint}")
        return replace(self, **values)

    @classmethod
    def _checked(cls, name: str, value: Any) -> Any:
        kinds, bounds = cls._kinds()[name], cls.__dataclass_fields__[name].metadata["bounds"]
        value = value.item() if isinstance(value, np.generic) else value
        if NoneType in kinds and (value is None or (isinstance(value, str) and value == NONE)):
            return None
        kind = kinds[0]
        if get_origin(kind) is Literal:
            return check_choice(name, value, get_args(kind))
        if get_origin(kind) is tuple:
            if not isinstance(value, tuple | list):
                raise ArgumentError(name, value, "must be a list of whole numbers, such as [0, 1, 2]")
            return tuple(check_whole(name, each, **bounds) for each in value)
        if kind is bool:
            return check_flag(name, value)
        if kind is str and not isinstance(value, str):
            raise ArgumentError(name, value, "must be a string")
        if kind is float:
            return check_number(name, value, **bounds)
        return value if kind is str else check_whole(name, value, **bounds)

    @classmethod
    @cache
    def _kinds(cls) -> dict[str, tuple[Any, ...]]:
        """The types that each field allows, ``None`` last."""
        hints = ((each.name, get_type_hints(cls)[each.name]) for each in fields(cls))
        return {name: get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,) for name, hint in hints}


def described_lines(options: Iterable[Option]) -> str:
    """A list of options for a docstring: name, range, default, meaning."""
    lines = []
    for option in options:
        default = repr(option.default) if isinstance(option.default, str) else str(option.default)
        text = f"{option.name} ({option.range}; default {default}): {option.meaning}"
        lines += textwrap.wrap(text, _WIDTH, initial_indent="- ", subsequent_indent="  ")
    return "\n".join(lines)


def read_assignments(texts: Mapping[str, str]) -> dict[str, Any]:
    """Read values as TOML writes them: ``0.1``, ``true``, ``[0, 1, 2]``. Anything else is a string."""

    def read(text: str) -> Any:
        try:
            document = parse_toml(f"value = {text}")
        except (ValueError, RecursionError):
            return text
        return document["value"] if len(document) == 1 else text

    return {name: read(text) for name, text in texts.items()}


def in_words(value: Any) -> str:
    """A value as ``--set`` takes it."""
    if isinstance(value, bool):
        return str(value).lower()
    return NONE if value is None else str(value)


def _range_in_words(kinds: tuple[Any, ...], bounds: Mapping[str, float]) -> str:
    signs = {"least": ">=", "above": ">", "most": "<=", "below": "<"}
    limits = " and ".join(f"{sign} {bounds[which]:g}" for which, sign in signs.items() if which in bounds)
    names = {int: f"whole number {limits}", float: f"number {limits}", bool: "true or false", str: "string"}
    words: list[str] = []
    for kind in kinds:
        if get_origin(kind) is Literal:
            words += get_args(kind)
        elif get_origin(kind) is tuple:
            words.append(f"list of whole numbers {limits}".strip())
        else:
            words.append((names | {NoneType: NONE})[kind].strip())
    return ", ".join(words)
