import os
from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcnsl.runs.executor import ThisProcess, WorkerLost, check_by, check_wanted

from .fake_executor import FakeExecutor


def square(number: int) -> int:
    return number * number


def refuse_three(number: int) -> int:
    if number == 3:
        raise ArithmeticError("three")
    return number


@given(st.lists(st.integers()), st.integers(1, 5), st.integers(0, 9))
def test_every_item_comes_back_once_with_its_result(items, slots, seed) -> None:
    executor = FakeExecutor(slots, seed=seed)
    found = list(executor.each(square, deque(items)))
    assert sorted(found) == sorted((item, square(item)) for item in items)
    assert executor.most_under_way == min(slots, len(items))
    assert executor.calls_sent == 1


def test_the_queue_may_grow_and_shrink() -> None:
    items, seen = deque([1, 2, 9, 9]), []
    for item, _ in FakeExecutor(slots=1).each(square, items):
        seen.append(item)
        if item == 1:
            items.remove(9)
        if item == 9:
            items.extend([10, 11])
    assert seen == [1, 2, 9, 10, 11]


def test_what_kills_its_workers_is_said_and_the_rest_goes_on() -> None:
    found = dict(FakeExecutor(lost={2}).each(square, deque([1, 2, 3])))
    assert isinstance(found.pop(2), WorkerLost)
    assert found == {1: 1, 3: 9}


@pytest.mark.parametrize("stop", ["break", "raise"])
def test_what_is_under_way_is_given_up_at_the_end(stop) -> None:
    executor = FakeExecutor(slots=3)
    if stop == "raise":
        with pytest.raises(ArithmeticError, match="three"):
            list(executor.each(refuse_three, deque([3] * 5)))
        assert executor.cancelled == 3
    else:
        found = executor.each(square, deque([3] * 5))
        next(found)
        found.close()
        assert executor.cancelled == 2


def test_a_run_is_ended_by_the_check_of_its_worker() -> None:
    check_wanted()

    def stop(*_) -> None:
        raise InterruptedError

    check_by(stop)
    try:
        with pytest.raises(InterruptedError):
            check_wanted(0, "epoch")
    finally:
        check_by(lambda *_: None)


def test_this_process_works_on_one_after_the_other_and_tells_epochs_of_what() -> None:
    def call(item: str) -> tuple[str, int]:
        check_wanted(1)
        return item, os.getpid()

    told = []
    with ThisProcess(lambda *news: told.append(news)) as executor:
        assert executor.slots == executor.ready == 1
        found = list(executor.each(call, deque("abc")))
    assert found == [(item, (item, os.getpid())) for item in "abc"]
    assert told == [("a", 1), ("b", 1), ("c", 1)]
    check_wanted(2)
    assert len(told) == 3, "afterwards nobody listens"
