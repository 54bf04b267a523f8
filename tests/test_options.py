from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcnsl.errors import ArgumentError, InputError
from gcnsl.options import Log, OneOf, Options, option, read_assignments, redeclared


@dataclass(frozen=True)
class Example(Options):
    is_example: ClassVar[bool] = True

    lr: float = option(0.1, "Learning rate.", above=0)
    depth: int = option(2, "Number of layers.", least=1, most=64)
    width: int = option(8, "Width.", least=1)
    share: float | None = option(None, "A share.", least=0, below=1)
    norm: Literal["none", "row"] = option("row", "A norm.")
    loops: bool = option(True, "Whether there are loops.")
    powers: tuple[int, ...] = option((0, 1), "Powers.", least=0, most=9)


@dataclass(frozen=True)
class Searched(Example):
    lr: float = redeclared(Example, "lr", 0.5, search=Log(0.01, 1.0))
    width: int = option(8, "Width.", least=1, search=OneOf(8, 16))


NO_OPTION = "there is no such option; there are lr, depth, width, share, norm, loops, powers"


def test_they_describe_themselves() -> None:
    assert [tuple(each)[:4] for each in Example.described()] == [
        ("lr", "Learning rate.", "number > 0", 0.1),
        ("depth", "Number of layers.", "whole number >= 1 and <= 64", 2),
        ("width", "Width.", "whole number >= 1", 8),
        ("share", "A share.", "number >= 0 and < 1, none", None),
        ("norm", "A norm.", "none, row", "row"),
        ("loops", "Whether there are loops.", "true or false", True),
        ("powers", "Powers.", "list of whole numbers >= 0 and <= 9", (0, 1)),
    ]
    assert Example.names() == ["lr", "depth", "width", "share", "norm", "loops", "powers"]


def test_an_option_that_is_redeclared_keeps_the_rest_of_its_declaration() -> None:
    lr = Searched.described()[0]
    assert lr[:4] == ("lr", "Learning rate.", "number > 0", 0.5)
    assert str(lr.search) == "0.01 to 1 on a logarithmic scale"
    with pytest.raises(InputError, match=r"lr\(0\) must be > 0"):
        Searched(lr=0)
    assert [each.name for each in Searched.described() if each.search] == ["lr", "width"]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"lr": "fast"}, "lr('fast') must be a number > 0"),
        ({"lr": 0}, "lr(0) must be > 0"),
        ({"lr": True}, "lr(True) must be a number > 0"),
        ({"lr": float("nan")}, "lr(nan) must be finite and > 0"),
        ({"lr": 10**400}, str(ArgumentError("lr", 10**400, "must be finite and > 0"))),
        ({"depth": 0}, "depth(0) must be from 1 to 64"),
        ({"depth": 2.0}, "depth(2.0) must be a whole number from 1 to 64"),
        ({"width": 10**40}, f"width({10**40}) must be from 1 to 2147483647"),
        ({"width": "8"}, "width('8') must be a whole number >= 1"),
        ({"share": 1}, "share(1) must be >= 0 and < 1"),
        ({"share": "half"}, "share('half') must be a number >= 0 and < 1"),
        ({"share": np.array(["none"])}, "share(array(['none'], dtype='<U4')) must be a number >= 0 and < 1"),
        ({"norm": "column"}, "norm('column') must be one of none, row"),
        ({"loops": 1}, "loops(1) must be true or false"),
        ({"powers": 3}, "powers(3) must be a list of whole numbers, such as [0, 1, 2]"),
        ({"powers": [0, 1.5]}, "powers(1.5) must be a whole number from 0 to 9"),
        ({"powers": [0, 10]}, "powers(10) must be from 0 to 9"),
        ({"speed": 3}, f"speed: {NO_OPTION}"),
        ({"is_example": False}, f"is_example: {NO_OPTION}"),
    ],
)
def test_what_can_not_be_is_refused_in_one_sentence(values, message) -> None:
    for ask in (Example.check, Example().changed):
        with pytest.raises(InputError) as refusal:
            ask(**values)
        assert str(refusal.value) == message
    if values.keys() <= set(Example.names()):
        with pytest.raises(InputError) as refusal:
            Example(**values)
        assert str(refusal.value) == message


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"lr": np.float32(0.5)}, 0.5),
        ({"lr": 1}, 1.0),
        ({"lr": Fraction(1, 2)}, 0.5),
        ({"depth": np.int16(3)}, 3),
        ({"share": "none"}, None),
        ({"share": 0}, 0.0),
        ({"norm": np.str_("none")}, "none"),
        ({"loops": np.bool_(False)}, False),
        ({"powers": [2, np.int64(0)]}, (2, 0)),
    ],
)
def test_values_are_brought_into_one_form(values, expected) -> None:
    (name,) = values
    for made in (Example(**values), Example().changed(**values)):
        value = getattr(made, name)
        assert value == expected
        assert type(value) is type(expected)
        assert hash(made) == hash(Example(**{name: expected}))


@given(st.text())
def test_any_text_is_read(text) -> None:
    assert list(read_assignments({"a": text})) == ["a"]
