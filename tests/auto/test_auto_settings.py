import itertools

import pytest

from gcnsl.auto.auto_settings import AUTO, EFFORTS, AutoSettings
from gcnsl.errors import InputError
from gcnsl.methods import METHODS


def test_more_quality_is_more_effort() -> None:
    efforts = [AutoSettings(quality=name).effort for name in ("fast", "good", "best")]
    assert efforts == list(EFFORTS.values())
    for one, other in itertools.pairwise(efforts):
        assert all(less < more for less, more in zip(one, other, strict=True))


def test_it_is_the_name_of_no_method() -> None:
    assert AUTO not in METHODS


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"quality": "superb"}, "must be one of fast, good, best"),
        ({"metric": "speed"}, "must be one of accuracy"),
        ({"distil": "gnc"}, "must be one of mlp"),
        ({"processes": 0}, ">= 1"),
        ({"class_weight": "heavy"}, "balanced"),
    ],
)
def test_wrong_values_are_refused(options, told) -> None:
    with pytest.raises(InputError, match=told):
        AutoSettings(**options)


def test_an_alias_is_as_good_as_the_name() -> None:
    assert AutoSettings(distil="h2gcn").distil == "h2gcn-2"
