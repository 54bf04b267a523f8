import os
import time

import pytest

from gcnsl.workers.job_pool import JobPool, TooSlow


def work(context: int, item: str) -> int:
    if item == "slow":
        time.sleep(600)
    if item == "dies":
        os._exit(9)
    if item == "wrong":
        raise ValueError("wrong")
    return context + len(item)


@pytest.mark.filterwarnings("ignore:A worker stopped")
def test_results_come_as_they_are_ready_and_what_is_slow_is_killed() -> None:
    waiting, done = ["one", "slow", "dies", "wrong", "three"], {}
    with JobPool(work, 10, processes=1) as pool:
        while waiting or pool.running:
            if waiting and pool.has_room:
                pool.submit(waiting.pop(0), seconds=2 if waiting and waiting[0] == "dies" else 300)
                assert not pool.has_room
            for each in pool.wait(60):
                done[each.item] = each
    assert (done["one"].result, done["three"].result) == (13, 15)
    assert isinstance(done["slow"].error, TooSlow)
    assert "terminated" in str(done["dies"].error)
    assert str(done["wrong"].error) == "wrong"
    assert all((each.result is None) == (each.error is not None) for each in done.values())


def test_nothing_is_awaited_when_the_pool_is_left() -> None:
    with JobPool(work, 10, processes=1) as pool:
        pool.submit("slow", seconds=600)
        assert pool.wait(0.1) == []
        assert pool.running == ["slow"]
