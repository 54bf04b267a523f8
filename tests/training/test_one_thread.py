import torch
from threadpoolctl import threadpool_info

from gcnsl.training.one_thread import one_thread


def test_one_thread_works_and_then_all_of_them_again() -> None:
    before = torch.get_num_threads()
    pools = [pool["num_threads"] for pool in threadpool_info()]
    with one_thread():
        assert torch.get_num_threads() == 1
        assert {pool["num_threads"] for pool in threadpool_info()} <= {1}
    assert torch.get_num_threads() == before
    assert [pool["num_threads"] for pool in threadpool_info()] == pools
