import pickle
from itertools import chain

import pytest
import torch

from gcnsl.sharding import node_rows
from gcnsl.sharding.node_rows import NodeRows, divided
from gcnsl.sharding.row_shards import ShardedMatrix, shard, whole_shape
from gcnsl.sparse import SparseMatrix, stored_entries

from .ranks import in_group

N, WIDTH = 9, 4


def matrix(columns: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(columns)
    values = torch.randn(N, columns, generator=generator, dtype=torch.float64)
    return values * (torch.rand(N, columns, generator=generator) < 0.5)


def products_of_own_rows(columns: int, sparse: bool) -> list[list[list[float]]]:
    """The product with a matrix that has a row for each node or block, and the derivative of a sum."""
    m, b = matrix(columns), matrix(WIDTH).repeat(columns // N, 1)
    node_rows.LARGEST_GATHERED, node_rows.LEAST_COLUMNS = 1, 3  # of 4 columns
    with divided(N) as rows:
        whole = SparseMatrix(m.to_sparse_csr()) if sparse else m
        (part,) = shard([whole], rows, node_columns={0})
        own = b[rows.by_process(columns)[rows.times(columns // N).own]].clone().requires_grad_()
        assert part.shape == (rows.count, len(own))
        assert whole_shape(part) == [N, columns]
        product = part @ own
        (product * product.detach()).sum().backward()
        return [product.tolist(), own.grad.tolist()]


@pytest.mark.parametrize("sparse", [True, False], ids=["sparse", "dense"])
@pytest.mark.parametrize("blocks", [1, 2])
def test_products_are_those_of_the_whole_matrix(blocks: int, sparse: bool) -> None:
    columns, size = blocks * N, 2
    m, b = matrix(columns), matrix(WIDTH).repeat(blocks, 1).requires_grad_()
    product = m @ b
    (product * product.detach()).sum().backward()
    answers = in_group(size, products_of_own_rows, columns, sparse)
    found = [torch.tensor([*chain(*(answer[k] for answer in answers))], dtype=torch.float64) for k in range(2)]
    torch.testing.assert_close(found[0], product.detach())
    first, second = (torch.arange(columns).view(blocks, N)[:, nodes].flatten() for nodes in (slice(5), slice(5, N)))
    torch.testing.assert_close(found[1], b.grad[torch.cat([first, second])])


def own_rows_of_features() -> list[object]:
    m = matrix(6)
    with divided(N) as rows:
        dense, sparse = shard([m, SparseMatrix(m.to_sparse_csr())], rows, node_columns=())
        return [dense.tolist(), sparse.to_dense().tolist(), sparse.first_entry, whole_shape(dense), whole_shape(sparse)]


def test_rows_of_features_know_how_many_entries_are_before_them() -> None:
    m, before = matrix(6), 0
    for answer, part in zip(in_group(2, own_rows_of_features), (m[:5], m[5:]), strict=True):
        assert answer == [part.tolist(), part.tolist(), before, [N, 6], [N, 6]]
        before += int(part.count_nonzero())


@pytest.mark.parametrize("node_columns", [(), {0}], ids=["features", "adjacency"])
@pytest.mark.parametrize("sparse", [True, False], ids=["sparse", "dense"])
def test_a_part_does_not_keep_or_send_the_whole(sparse, node_columns) -> None:
    n = 1000
    whole = torch.ones(n, n)
    (part,) = shard(
        [SparseMatrix(whole.to_sparse_csr()) if sparse else whole], NodeRows.of(n, 100, 1), node_columns=node_columns
    )
    assert len(pickle.dumps(part)) < whole.nbytes / 10


def test_rows_know_what_is_before_them_on_another_device() -> None:
    (part,) = shard([SparseMatrix(matrix(6).to_sparse_csr())], NodeRows.of(N, 2, 1), node_columns=())
    assert part.to("meta").first_entry == part.with_values(part.values).first_entry == part.first_entry > 0


def test_a_sharded_matrix_counts_its_entries_and_moves() -> None:
    part = ShardedMatrix(SparseMatrix(matrix(N)[:5].to_sparse_csr()), (N, N))
    assert stored_entries(part) == int(matrix(N)[:5].count_nonzero())
    assert part.to("cpu").shape == part.shape == (5, 5)


def test_in_a_single_process_a_shape_is_whole() -> None:
    assert whole_shape(torch.ones(3, 2)) == [3, 2]
