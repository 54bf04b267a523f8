"""What ``--set`` says: hyper-parameters as ``KEY=VALUE``, for one method or for several."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gcnsl.errors import InputError

if TYPE_CHECKING:
    from gcnsl.methods import Method


def read_options(given: Iterable[str] | None) -> dict[str, Any]:
    """Strings ``key=value`` as a table; values are written as in TOML."""
    from gcnsl.options import read_assignments

    options = {}
    for text in given or ():
        key, equals, value = text.partition("=")
        if not key.strip() or not equals:
            raise InputError(f"--set {text!r} is not a setting: write KEY=VALUE, for example --set epochs=200")
        options[key.strip()] = value.strip()
    return read_assignments(options)


def with_class_weight(options: dict[str, Any], class_weight: str | None) -> dict[str, Any]:
    """The options with what ``--class-weight`` says, which is short for ``--set class_weight=...``."""
    return options if class_weight is None else {"class_weight": class_weight, **options}


def resolve_all(
    names: Iterable[str],
    benchmark: str | None,
    settings: Path | None,
    given: Mapping[str, Any],
    metric: str | None = None,
) -> dict[str, Method]:
    """Methods by name, each with its hyper-parameters.

    Methods for which the settings file has nothing do without it, but it must have some for one of them. In ``given``,
    which is what ``--set`` says, ``key`` is for all methods and ``method.key`` for one; ``metric`` chooses epochs.
    """
    from gcnsl.methods import ALIASES, find_method, resolve
    from gcnsl.methods.resolver import read_settings

    names = [find_method(name).name for name in names]
    options: dict[str, dict[str, Any]] = {name: {} for name in names}
    for key, value in given.items():
        whose, dot, option = key.rpartition(".")
        name = ALIASES.get(whose, whose)
        if dot and name not in options:
            raise InputError(f"--set {key}: {whose!r} is not compared; the models are {', '.join(options)}")
        for one in [name] if dot else options:
            options[one][option] = value
    having = set(names) if settings is None else set(names) & read_settings(settings).keys()
    if not having:
        raise InputError(f"{settings} has settings for none of {', '.join(names)}: give another file, or leave it out")
    return {
        name: resolve(
            name,
            benchmark=benchmark,
            settings=settings if name in having else None,
            options=options[name],
            metric=metric,
        )
        for name in names
    }
