import threading

import pytest
import torch
from threadpoolctl import threadpool_info

from gcnsl import cores


@pytest.fixture(autouse=True)
def three_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


def blas_threads() -> list[int]:
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_little_work_has_one_thread_and_much_work_has_all() -> None:
    with cores.threads_for(cores.LARGE - 1):
        assert torch.get_num_threads() == 1
        assert set(blas_threads()) == {1}
        assert {pool["num_threads"] for pool in threadpool_info()} == {1}
    with cores.threads_for(cores.LARGE):
        assert torch.get_num_threads() == 3


@pytest.mark.parametrize("block", [cores.threads_for, cores.torch_threads_for])
def test_everything_is_restored_after_an_error_too(block) -> None:
    before = threadpool_info()
    with pytest.raises(KeyError), block(0):
        raise KeyError
    assert torch.get_num_threads() == cores.allowed_threads() == 3
    assert threadpool_info() == before


def test_much_work_within_little_work_has_all_threads_that_the_caller_allows() -> None:
    with cores.threads_for(0):
        assert cores.allowed_threads() == 3
        with cores.torch_threads_for(cores.LARGE):
            assert torch.get_num_threads() == 3
            with cores.threads_for(0):
                assert torch.get_num_threads() == 1
            assert torch.get_num_threads() == 3
        assert torch.get_num_threads() == 1


def test_two_python_threads_do_not_restore_what_the_other_has_set() -> None:
    before, entered, may_leave = blas_threads(), threading.Event(), threading.Event()

    def hold() -> None:
        with cores.threads_for(0):
            entered.set()
            may_leave.wait(10)

    other = threading.Thread(target=hold)
    with cores.threads_for(0):
        other.start()
        assert entered.wait(10)
    assert set(blas_threads()) == {1}, "the other thread is still at work"
    may_leave.set()
    other.join()
    assert blas_threads() == before


def test_libraries_that_are_loaded_later_are_limited_too() -> None:
    with cores.threads_for(0):
        pass
    import sklearn.ensemble  # noqa: F401 - it loads a library for threads of its own

    with cores.threads_for(0):
        assert {pool["num_threads"] for pool in threadpool_info()} == {1}
