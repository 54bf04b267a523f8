from itertools import chain

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gcnsl.errors import InputError
from gcnsl.sharding import node_rows, process_group
from gcnsl.sharding.node_rows import NodeRows, divided, gathered, number_of_nodes, of_all_nodes, total, work_shares

from .ranks import in_group

N, WIDTH = 11, 3


@given(st.integers(1, 200), st.integers(1, 9), st.integers(1, 3))
def test_every_row_belongs_to_one_process(n: int, size: int, repeats: int) -> None:
    divisions = [NodeRows.of(n, size, rank).times(repeats) for rank in range(size)]
    owned = [list(range(n * repeats))[rows.own] for rows in divisions]
    assert [*chain(*owned)] == list(range(n * repeats))
    assert [len(rows) for rows in owned] == [rows.count for rows in divisions]


@given(st.integers(1, 60), st.integers(1, 5), st.integers(1, 3))
def test_columns_by_process_are_those_of_its_nodes(n: int, size: int, blocks: int) -> None:
    order = NodeRows.of(n, size, 0).by_process(blocks * n)
    for rank in range(size):
        rows = NodeRows.of(n, size, rank)
        nodes = range(n)[rows.own]
        expected = [block * n + node for block in range(blocks) for node in nodes]
        assert order[rows.times(blocks).own].tolist() == expected


def matrices() -> tuple[torch.Tensor, ...]:
    """X (n × w), M (n × n) and what the results are weighted with (n × w)."""
    generator = torch.Generator().manual_seed(0)
    shapes = (N, WIDTH), (N, N), (N, WIDTH)
    return tuple(torch.randn(*shape, generator=generator, dtype=torch.float64) for shape in shapes)


def loss_and_gradient_of_own_rows() -> tuple[float, list[list[float]]]:
    x, m, weight = matrices()
    with divided(N) as rows:
        own = x[rows.own].clone().requires_grad_()
        part = (m[rows.own] @ gathered(own).sin() * weight[rows.own]).sum()  # a part of the loss in each process
        same = (of_all_nodes(own).cos() * weight).sum()  # the whole loss in each process
        (part + same).backward()
        return float(total(part) + same), own.grad.tolist()


@pytest.mark.parametrize("size", [1, 2, 4])
def test_losses_and_gradients_are_those_of_one_process(size: int) -> None:
    x, m, weight = matrices()
    x.requires_grad_()
    loss = (m @ x.sin() * weight).sum() + (x.cos() * weight).sum()
    loss.backward()
    answers = in_group(size, loss_and_gradient_of_own_rows)
    assert [found for found, _ in answers] == pytest.approx([loss.item()] * size, abs=1e-12)
    torch.testing.assert_close(torch.tensor([*chain(*(rows for _, rows in answers))], dtype=torch.float64), x.grad)


def shapes_of_uneven_rows() -> list[list[float]]:
    with divided(N):
        shares = work_shares(5)
        own = torch.arange(5.0)[:, None][shares.own]
        return [gathered(own, shares).tolist(), [float(number_of_nodes(own))]]


def test_work_is_put_together_even_if_some_processes_have_none() -> None:
    assert in_group(4, shapes_of_uneven_rows) == [[[[0], [1], [2], [3], [4]], [N]]] * 4


def test_a_single_process_has_all_rows() -> None:
    rows = torch.ones(3, 2)
    assert node_rows.node_rows() is None
    assert gathered(rows) is rows
    assert of_all_nodes(rows) is rows
    assert total(rows) is rows
    assert number_of_nodes(rows) == work_shares(3).count == 3


def test_too_few_nodes_for_the_processes(monkeypatch) -> None:
    monkeypatch.setattr(process_group, "size", lambda: 4)
    with pytest.raises(InputError, match="has 5 nodes, too few for 4 processes: start fewer"), divided(5):
        pass
    assert node_rows.node_rows() is None
