import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import normalize

from gcnsl.nn import contrast
from gcnsl.nn.contrast import contrastive_loss


def one_by_one(z: torch.Tensor, y: list[int], tau: float) -> torch.Tensor:
    terms = []
    for i in range(len(y)):
        others = [j for j in range(len(y)) if j != i]
        alike = [torch.exp(z[i] @ z[j] / tau) for j in others if y[j] == y[i]]
        if alike:
            terms.append(torch.log(sum(torch.exp(z[i] @ z[j] / tau) for j in others) / sum(alike)))
    return sum(terms, 0 * z.sum()) / max(1, len(terms))


@given(st.lists(st.integers(0, 3), min_size=1, max_size=9), st.floats(0.1, 2), st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_it_is_the_sum_over_pairs(y, tau, seed) -> None:
    rows = torch.randn(len(y), 3, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    results = []
    for loss in (
        lambda z: contrastive_loss(z, torch.tensor(y), classes=9, temperature=tau),
        lambda z: one_by_one(z, y, tau),
    ):
        leaf = rows.clone().requires_grad_()
        value = loss(normalize(leaf, dim=1))
        value.backward()
        results.append((value.detach(), leaf.grad))
    torch.testing.assert_close(*results)


def test_it_is_least_where_classes_are_apart() -> None:
    y = torch.tensor([0, 0, 1, 1])
    apart, mixed = torch.eye(2)[[0, 0, 1, 1]], torch.eye(2)[[0, 1, 0, 1]]
    near = contrastive_loss(apart, y, classes=3, temperature=0.1)
    assert near == pytest.approx(math.log1p(2 * math.exp(-10)), rel=0.01)
    assert near < contrastive_loss(mixed, y, classes=3, temperature=0.1)


def test_a_sample_of_many_rows_has_about_the_same_loss(monkeypatch) -> None:
    generator = torch.Generator().manual_seed(0)
    y = torch.randint(3, (400,), generator=generator)
    z = normalize(torch.eye(3)[y] + 0.5 * torch.randn(400, 3, generator=generator), dim=1)
    whole = contrastive_loss(z, y, classes=3, temperature=0.5)
    monkeypatch.setattr(contrast, "MOST_ANCHORS", 100)
    monkeypatch.setattr(contrast, "MOST_OTHERS", 200)
    torch.manual_seed(0)
    first, second = (contrastive_loss(z, y, classes=3, temperature=0.5) for _ in range(2))
    assert first != second
    assert first == pytest.approx(float(whole), rel=0.1)
