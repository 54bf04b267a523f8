import pytest
import torch
from torch.nn.functional import cosine_similarity

from gcnsl.nn.compared_rows import ComparedRows
from gcnsl.sparse import fastest_form


@pytest.mark.parametrize("sparse", [False, True])
def test_the_parts_add_up_to_the_similarity(sparse) -> None:
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(8, 40, generator=generator) * (torch.rand(8, 40, generator=generator) < 0.1)
    rows[3] = 0.0
    weight = torch.randn(3, 40, generator=generator)
    compared = ComparedRows("A*", "features", fastest_form(rows) if sparse else rows, weight, 0.5)
    assert isinstance(compared.rows, torch.Tensor) != sparse
    for i in range(8):
        expected = cosine_similarity((rows @ weight.T)[[i]], rows @ weight.T)
        torch.testing.assert_close(compared.similarities(i), expected, rtol=1e-4, atol=1e-5)
        for j in range(8):
            parts = compared.parts(i, j)
            assert float(parts.sum()) == pytest.approx(float(expected[j]), abs=1e-5)
            assert parts[(rows[i] == 0) & (rows[j] == 0)].eq(0).all()
