import pytest
import torch
from torch.nn.functional import cosine_similarity

from gcnsl.nn import gated_branches
from gcnsl.nn.gated_branches import ComparedRows, gated, gated_logits, unit_rows
from gcnsl.sparse import fastest_form

N, P, CLASSES = 50, 4, 3

DEVICES = [
    "cpu",
    pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")),
]

pytestmark = pytest.mark.usefixtures("double")


def parts(device: str = "cpu") -> tuple[list[torch.Tensor], torch.Tensor, torch.Tensor]:
    """Three branches, a gate with both signs, and weights."""
    torch.manual_seed(0)
    branches = [torch.rand(N, P, device=device, requires_grad=True) for _ in range(3)]
    gate, weight = (torch.randn(*shape, device=device, requires_grad=True) for shape in ((3 * P,), (CLASSES, 3 * P)))
    return branches, gate, weight


def test_the_formula() -> None:
    branches, gate, weight = parts()
    side_by_side = torch.cat(branches, dim=1)
    torch.testing.assert_close(gated(branches, gate), (gate * side_by_side).clamp(min=0))
    logits = gated_logits(branches, gate, weight, rate=0.5, training=False)
    torch.testing.assert_close(logits, (gate * side_by_side).clamp(min=0) @ weight.T)


@pytest.mark.parametrize("device", DEVICES)
def test_the_parts_of_a_large_graph_add_up_to_the_whole(monkeypatch, device) -> None:
    branches, gate, weight = parts(device)
    results = []
    for limit in (N, N - 1):
        monkeypatch.setattr(gated_branches, "WHOLE_NODES", limit)
        logits = gated_logits(branches, gate, weight, rate=0.5, training=False)
        results.append([logits, *torch.autograd.grad(logits.square().sum(), [*branches, gate, weight])])
    for whole, in_parts in zip(*results, strict=True):
        torch.testing.assert_close(in_parts, whole)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("limit", [N, N - 1])
def test_the_backward_pass_drops_the_same_entries(monkeypatch, limit, device) -> None:
    monkeypatch.setattr(gated_branches, "WHOLE_NODES", limit)
    branches, gate, weight = parts(device)

    def value(branch: torch.Tensor, gate: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(1)
        logits = gated_logits([branch, *branches[1:]], gate, weight, rate=0.3, training=True)
        return logits.square().sum()

    assert torch.autograd.gradcheck(value, (branches[0], gate, weight))
    drawn = [gated_logits(branches, gate, weight, rate=0.5, training=True) for _ in range(2)]
    assert not torch.equal(*drawn)


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


def test_unit_rows_of_any_scale() -> None:
    rows = torch.tensor([[3.0, 4.0], [0.0, 0.0], [3e-30, 4e-30], [3e30, 4e30]])
    torch.testing.assert_close(unit_rows(rows), torch.tensor([[0.6, 0.8], [0, 0], [0.6, 0.8], [0.6, 0.8]]))
