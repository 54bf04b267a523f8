"""Hyper-parameters out of their range, refused in one sentence."""

from collections.abc import Iterable

from gcnsl.errors import InputError


def check_at_least(least: int, **values: int) -> None:
    """Refuse a number below its smallest sensible value."""
    for name, value in values.items():
        if value < least:
            raise InputError(f"{name}({value}) must be >= {least}")


def check_dropout(**rates: float) -> None:
    """Refuse a rate that is none, or that leaves nothing."""
    for name, rate in rates.items():
        if not 0 <= rate < 1:
            raise InputError(f"{name}({rate}) must be in [0, 1)")


def check_choice(choices: Iterable[str], **values: str) -> None:
    """Refuse a word that is not one of the choices."""
    for name, value in values.items():
        if value not in choices:
            raise InputError(f"{name}({value!r}) must be one of {', '.join(choices)}")
