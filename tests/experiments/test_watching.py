import threading

import pytest

from gcnsl.experiments.watching import watching


def test_one_looks_now_and_then_and_once_more_at_the_end() -> None:
    looks, enough = [], threading.Event()

    def look() -> None:
        looks.append(threading.current_thread())
        if len(looks) == 3:
            enough.set()

    with watching(look, every=0.01):
        assert enough.wait(10)
        before_the_end = len(looks)
    assert len(looks) > before_the_end
    assert threading.main_thread() not in looks


def test_a_look_follows_an_error_too() -> None:
    looks = []
    with pytest.raises(ValueError, match="work"), watching(lambda: looks.append(1), every=60):
        raise ValueError("work")
    assert looks == [1]
