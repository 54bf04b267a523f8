"""A head of GCN-SL+'s learned graph, and the contrastive term that trains it."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import normalize

from gcnsl.nn import gcn_sl_plus
from gcnsl.nn.gcn_sl_plus import SimilarityHead, contrastive_loss
from gcnsl.reconnection import in_groups
from gcnsl.reconnection.in_groups import GroupSize

N, R, Q, P = 40, 7, 3, 4


def described() -> torch.Tensor:
    return torch.randn(N, R, generator=torch.Generator().manual_seed(0))


def averages(head: SimilarityHead, rows: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
    """The definition, with a matrix of all pairs."""
    z = normalize(rows @ head.similarity.weight.T, dim=1)
    s = z @ z.T
    a = torch.where(s >= head.epsilon, s, 0.0) * (1 - torch.eye(len(rows)))
    return a @ h / a.sum(dim=1, keepdim=True).clamp(min=1e-9)


def head_of(**options) -> SimilarityHead:
    torch.manual_seed(1)
    return SimilarityHead(R, Q, **({"mean_degree": 3.0, "epsilon": 0.9} | options))


def test_it_averages_over_similar_others() -> None:
    head, h = head_of(mean_degree=None).eval(), torch.rand(N, P, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(head(described(), h), averages(head, described(), h), rtol=1e-4, atol=1e-5)


def test_training_sets_the_threshold_and_evaluation_keeps_it() -> None:
    head, h = head_of(), torch.rand(N, P)
    head.eval()(described(), h)
    assert float(head.epsilon) == pytest.approx(0.9)
    head.train()(described(), h)
    met = float(head.epsilon)
    assert met != pytest.approx(0.9)
    assert head.edges(described())[0].shape[1] / N == pytest.approx(3, abs=0.1)
    head.eval()(torch.randn(N, R), h)
    assert float(head.epsilon) == met
    assert "epsilon" in head.state_dict()


def test_no_node_has_more_than_a_tenth_of_all_for_neighbours() -> None:
    head = head_of(mean_degree=1000.0)
    head.train()(described(), torch.rand(N, P))
    assert head.edges(described())[0].shape[1] / N == pytest.approx(N / 10, abs=0.1)


def test_rows_of_the_edges() -> None:
    head = head_of(mean_degree=None, epsilon=0.5)
    edges, similarity = head.edges(described())
    of_some, similarity_of_some = head.edges(described(), slice(5, 9))
    inside = (edges[0] >= 5) & (edges[0] < 9)
    assert of_some.equal(edges[:, inside])
    torch.testing.assert_close(similarity_of_some, similarity[inside])


def test_new_nodes_are_joined_to_known_ones_only() -> None:
    head, h = head_of(mean_degree=None, epsilon=0.2).eval(), torch.rand(N, P)
    rows = described()
    known = 30
    together = head(rows, h, known=known)
    torch.testing.assert_close(together[:known], head(rows[:known], h[:known]), rtol=1e-4, atol=1e-5)
    for new in range(known, N):
        kept = [*range(known), new]
        alone = head(rows[kept], h[kept], known=known)
        torch.testing.assert_close(together[new], alone[-1], rtol=1e-4, atol=1e-5)


def test_a_large_graph_is_compared_in_groups(monkeypatch) -> None:
    rows = torch.randn(300, R, generator=torch.Generator().manual_seed(0))
    head, h = head_of(mean_degree=None, epsilon=0.5), torch.rand(300, P)
    exact = head.train()(rows, h)
    monkeypatch.setattr(in_groups, "EXACT_NODES", 100)
    monkeypatch.setattr(in_groups, "IN_TRAINING", GroupSize(128, 8))
    monkeypatch.setattr(in_groups, "IN_EVALUATION", GroupSize(512, 300))
    steps = [head(rows, h) for _ in range(2)]
    assert not torch.equal(*steps)
    torch.testing.assert_close(sum(head(rows, h) for _ in range(60)) / 60, exact, rtol=0.2, atol=0.05)
    head.eval()
    torch.testing.assert_close(head(rows, h), exact, rtol=1e-4, atol=1e-5)  # one group has all nodes
    torch.testing.assert_close(head(rows, h, known=200)[:200], head(rows[:200], h[:200]))


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


def test_a_sample_of_many_rows_has_about_the_same_loss(monkeypatch) -> None:
    generator = torch.Generator().manual_seed(0)
    y = torch.randint(3, (400,), generator=generator)
    z = normalize(torch.eye(3)[y] + 0.5 * torch.randn(400, 3, generator=generator), dim=1)
    whole = contrastive_loss(z, y, classes=3, temperature=0.5)
    monkeypatch.setattr(gcn_sl_plus, "MOST_ANCHORS", 100)
    monkeypatch.setattr(gcn_sl_plus, "MOST_OTHERS", 200)
    torch.manual_seed(0)
    first, second = (contrastive_loss(z, y, classes=3, temperature=0.5) for _ in range(2))
    assert first != second
    assert first == pytest.approx(float(whole), rel=0.1)
