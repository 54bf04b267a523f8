import numba
import pytest

from gcnsl.compiled import compiled


def add(a, b):
    return a + b


@pytest.mark.parametrize("writable", [True, False])
def test_compiles_with_and_without_a_folder_for_the_cache(writable, monkeypatch):
    asked = []

    def njit(*, cache=False, **options):
        asked.append((cache, options))
        if cache and not writable:
            raise RuntimeError("cannot cache function 'add': no locator available")
        return lambda function: function

    monkeypatch.setattr(numba, "njit", njit)
    assert compiled(fastmath={"contract"})(add)(1, 2) == 3
    options = {"nogil": True, "fastmath": {"contract"}}
    assert asked == ([(True, options)] if writable else [(True, options), (False, options)])


def test_really_compiles():
    function = compiled()(add)
    assert function(1, 2) == 3
    assert function.nopython_signatures
