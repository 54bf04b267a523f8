from dataclasses import dataclass
from typing import Any, Literal

import pytest

from gcnsl.experiments.field_types import check_fields, fits

FITTING = [
    (1, int),
    (1, float),
    (1.5, float),
    (True, bool),
    ("a", Literal["a", "b"]),
    (None, float | None),
    ({"a": [1, 2.5]}, dict[str, list[float]]),
    ((("a", object()),), tuple[tuple[str, Any], ...]),
    (object(), Any),
]
OTHERS = [
    (True, int),
    (True, float),
    (1, bool),
    (1.5, int),
    (float("nan"), float),
    (float("inf"), float | None),
    (10**400, float),
    ("c", Literal["a", "b"]),
    ([], Literal["a", "b"]),
    ("1", float | None),
    ({1: []}, dict[str, list[float]]),
    ({"a": ["x"]}, dict[str, list[float]]),
    ([("a", 1)], tuple[tuple[str, Any], ...]),
    (b"a", str),
]


@pytest.mark.parametrize(("value", "kind"), FITTING)
def test_a_value_of_its_type(value, kind) -> None:
    assert fits(value, kind)


@pytest.mark.parametrize(("value", "kind"), OTHERS)
def test_a_value_of_another_type(value, kind) -> None:
    assert not fits(value, kind)


@dataclass
class Record:
    name: str
    sizes: list[int]


def test_the_field_is_named() -> None:
    check_fields(Record("a", [1]))
    with pytest.raises(ValueError, match=r"sizes is \[1, 'b'\]"):
        check_fields(Record("a", [1, "b"]))
