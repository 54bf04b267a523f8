import numba

from gcnsl.compiled import compiled


def test_a_compiled_function_gives_the_same_result() -> None:
    @compiled(fastmath=True)
    def total(n):
        s = 0
        for k in range(n):
            s += k
        return s

    assert total(10) == 45
    assert total.nopython_signatures


def test_without_a_folder_for_the_cache_nothing_is_cached(monkeypatch) -> None:
    asked = []

    def njit(cache=False, **options):
        asked.append((cache, options))
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return lambda function: function

    monkeypatch.setattr(numba, "njit", njit)
    assert compiled(fastmath=True)(len) is len
    assert asked == [(True, {"nogil": True, "fastmath": True}), (False, {"nogil": True, "fastmath": True})]
