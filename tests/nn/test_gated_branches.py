from collections.abc import Iterator

import pytest
import torch

from gcnsl.nn import gated_branches
from gcnsl.nn.gated_branches import gated, gated_logits

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


def test_evaluation_draws_nothing(monkeypatch) -> None:
    monkeypatch.setattr(gated_branches, "WHOLE_NODES", N - 1)
    branches, gate, weight = parts()
    before = torch.get_rng_state()
    gated_logits(branches, gate, weight, rate=0.5, training=False)
    assert torch.equal(torch.get_rng_state(), before)


def test_the_backward_pass_of_a_large_graph_is_done_with_one_branch_before_the_next(monkeypatch) -> None:
    monkeypatch.setattr(gated_branches, "WHOLE_NODES", N - 1)
    inputs, gate, weight = parts()
    order: list[str] = []

    def made() -> Iterator[torch.Tensor]:
        for number, value in enumerate(inputs):
            product = value * 2
            product.register_hook(lambda _, number=number: order.append(f"gradient of {number}"))
            value.register_hook(lambda _, number=number: order.append(f"done with {number}"))
            yield product

    gated_logits(made(), gate, weight, rate=0.5, training=True).sum().backward()
    assert order == [f"{what} {number}" for number in (2, 1, 0) for what in ("gradient of", "done with")]
