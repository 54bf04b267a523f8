import torch

from gcnsl.reconnection.problem import Problem


def test_keys_are_z_only_where_none_are_given() -> None:
    z, h = torch.eye(3), torch.ones(3, 2)
    assert Problem.of(z, None, h, 0.5, 1e-4).square
    same_rows = Problem.of(z, z, h, 0.5, 1e-4)
    assert not same_rows.square
    assert torch.equal(same_rows.keys, z)


def test_tensors_become_contiguous() -> None:
    z, h = torch.ones(4, 3).T, torch.ones(2, 3).T
    problem = Problem.of(z, None, h, 0.5, 1e-4)
    assert problem.square
    assert problem.z.is_contiguous()
    assert problem.h.is_contiguous()
