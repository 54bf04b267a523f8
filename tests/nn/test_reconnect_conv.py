"""The learned graph as a layer, as a head of GCN-SL+, and the contrastive term that trains the latter."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import normalize

from gcnsl import InputError
from gcnsl.nn import ReconnectConv, gcn_sl_plus
from gcnsl.nn.gcn_sl_plus import contrastive_loss
from gcnsl.nn.reconnect_conv import SimilarityHead
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


@pytest.mark.parametrize("loops", [True, False])
def test_the_layer_is_its_equation(loops) -> None:
    x, conv = described(), ReconnectConv(R, P, Q, epsilon=0.8, loops=loops)
    torch.nn.init.normal_(conv.bias)
    z = normalize(x @ conv.graph.similarity.weight.T, dim=1)
    s = z @ z.T
    a = torch.where(s >= 0.8, s, 0.0).fill_diagonal_(float(loops))
    expected = a @ (x @ conv.lin.weight.T) / a.sum(dim=1, keepdim=True).clamp(min=1e-9) + conv.bias
    for form in (x, x.to_sparse_csr(), x.to_sparse()):
        torch.testing.assert_close(conv(form), expected, rtol=1e-4, atol=1e-5)
        (source, target), weight = conv.learned_graph(form)
        torch.testing.assert_close(torch.zeros(N, N).index_put((source, target), weight), a, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(conv.double()(x.double()).float(), expected, rtol=1e-4, atol=1e-5)


def test_the_layer_is_a_layer_of_pyg() -> None:
    torch.manual_seed(0)
    conv = ReconnectConv(R, P, mean_degree=3, loops=False)
    assert str(conv) == f"ReconnectConv({R}, {P})"
    before = {name: value.clone() for name, value in conv.state_dict().items()}
    conv(described()).sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in conv.parameters())
    assert conv.learned_graph(described())[0].shape[1] / N == pytest.approx(3, abs=0.1)
    assert conv(torch.empty(0, R)).shape == (0, P)
    assert conv(torch.zeros(3, R)).equal(conv.bias.expand(3, P))  # zero rows are like no other
    other = ReconnectConv(R, P, mean_degree=3, loops=False)
    other.load_state_dict(conv.state_dict())
    assert other.eval()(described()).equal(conv.eval()(described()))
    conv.reset_parameters()
    assert conv.graph.epsilon == before["graph.epsilon"]
    assert not conv.lin.weight.equal(before["lin.weight"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"in_channels": 0}, r"in_channels\(0\) must be >= 1"),
        ({"similarity_channels": 2.5}, r"similarity_channels\(2.5\) must be a whole number"),
        ({"epsilon": 1.5}, r"epsilon\(1.5\) must be >= 0 and <= 1"),
        ({"mean_degree": 0}, r"mean_degree\(0\) must be > 0"),
        ({"loops": "no"}, r"loops\('no'\) must be true or false"),
    ],
)
def test_wrong_arguments_of_the_layer_are_named(options, message) -> None:
    with pytest.raises(InputError, match=message):
        ReconnectConv(**{"in_channels": R, "out_channels": P, **options})
    with pytest.raises(InputError, match=f"x has 9 columns, .* built for in_channels={R}"):
        ReconnectConv(R, P)(torch.ones(4, 9))


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
