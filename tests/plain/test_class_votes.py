import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.nn import LabelPropagation as Reference
from torch_geometric.nn.conv.gcn_conv import gcn_norm

from gcnsl.graph import from_arrays
from gcnsl.plain import class_votes
from gcnsl.plain.class_votes import ClassVotes
from gcnsl.plain.plain_config import LabelPropagationConfig, TwinsConfig

from .cases import CLASSES, N, fit, graph, setup, trained_on


def test_votes_become_probabilities_of_which_none_is_zero() -> None:
    model = ClassVotes(4, 3)
    model.remember(torch.tensor([0, 0, 1, -1]), torch.tensor([1.0, 1.0, 2.0, 9.0]))
    assert model.labels.tolist() == [[1, 0, 0], [1, 0, 0], [0, 2, 0], [0, 0, 0]]
    prior = torch.tensor([3, 3, 1]) / 7
    torch.testing.assert_close(model.prior, prior)
    found = model.log_probabilities(torch.tensor([[3.0, 1.0, 0.0], [0.0, 0.0, 0.0]])).softmax(dim=1)
    torch.testing.assert_close(found[0], 0.99 * torch.tensor([0.75, 0.25, 0]) + 0.01 * prior)
    torch.testing.assert_close(found[1], prior)


@pytest.mark.parametrize(("weighted", "steps", "alpha"), [(True, 1, 0.3), (False, 7, 0.3), (True, 2, 1.0)])
def test_label_propagation_is_that_of_torch_geometric(weighted, steps, alpha) -> None:
    data = graph(weighted=weighted)
    model, inputs = setup(LabelPropagationConfig(alpha=alpha), data)
    y = trained_on(data.y)
    fit(model, inputs, y, stages=steps)
    edges = gcn_norm(data.edge_index, data.get("edge_weight"), N, add_self_loops=False)
    scores = Reference(steps, alpha)(data.y, edges[0], y >= 0, edges[1])
    votes = ClassVotes(N, CLASSES)
    votes.remember(y, torch.ones(N))
    torch.testing.assert_close(model(*inputs), votes.log_probabilities(scores))


def test_scores_reach_new_nodes() -> None:
    data, config = graph(), LabelPropagationConfig()
    model, inputs = setup(config, data)
    fit(model, inputs, trained_on(data.y), stages=3)
    links = torch.cat([data.edge_index, torch.tensor([[N, N + 1], [4, N]])], dim=1)
    grown = from_arrays(torch.cat([data.x, data.x[:3]]), links)
    logits = model(*config.inputs(grown, None, seed=0))
    assert logits.shape == (N + 3, CLASSES)
    torch.testing.assert_close(logits[N + 2].exp() / logits[N + 2].exp().sum(), model.prior)
    assert not logits[N + 1].allclose(logits[N + 2]), "two steps away"


def slow_votes(links: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The definition, node by node."""
    votes = np.zeros((len(links), labels.shape[1]))
    length = np.linalg.norm(links, axis=1)
    for i in range(len(links)):
        cosine = {}
        for j in np.flatnonzero(labels.any(axis=1)):
            if j != i and length[i] > 0 and length[j] > 0:
                cosine[j] = links[i] @ links[j] / (length[i] * length[j])
        best = max(cosine.values(), default=0)
        votes[i] = sum((labels[j] for j, value in cosine.items() if best > 0 and value > best - 1e-9), votes[i])
    return votes


@given(st.integers(0, 10_000), st.integers(1, 12), st.integers(0, 3), st.booleans(), st.sampled_from([1, 20, 1 << 22]))
def test_the_nearest_training_nodes_vote(seed, known, new, weighted, block) -> None:
    rng = np.random.default_rng(seed)
    links = (rng.random((known + new, known)) < 0.4) * (rng.integers(1, 4, (known + new, known)) if weighted else 1.0)
    labels = np.eye(3)[rng.integers(0, 3, known)] * (rng.random((known, 1)) < 0.7)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(class_votes, "BLOCK", block)
        found = class_votes.nearest_votes(sp.csr_array(links), labels)
    np.testing.assert_allclose(found, slow_votes(links, labels))


def test_many_nodes_with_the_same_links_are_compared_once() -> None:
    """The leaves of a star are all twins of each other: five billion pairs here."""
    n = 70_000
    links = sp.csr_array((np.ones(n - 1), (np.arange(1, n), np.zeros(n - 1, int))), shape=(n, n))
    labels = np.eye(2)[np.arange(n) % 2] * (np.arange(n) < 1000)[:, None]
    votes = class_votes.nearest_votes(links, labels)
    np.testing.assert_array_equal(votes[0], [0, 0])
    np.testing.assert_array_equal(votes[1], [499, 499])
    np.testing.assert_array_equal(votes[1001:], np.tile([499, 500], (n - 1001, 1)))


@pytest.mark.parametrize("direction", ["out", "in", "undirected"])
def test_the_direction_decides_what_is_compared(direction) -> None:
    arcs = torch.tensor([[0, 1, 3, 4], [2, 2, 0, 1]])  # 0 and 1 point to the same node; 3 and 4 to nothing shared
    data = from_arrays(torch.eye(5), arcs, torch.tensor([0, 1, 0, 1, 1]), directed=True)
    config = TwinsConfig(direction=direction)
    model, inputs = config.build(5, 2, 5), config.inputs(data, None, seed=0)
    fit(model, inputs, torch.tensor([0, -1, -1, -1, -1]))
    probability = model(*inputs).softmax(dim=1)[:, 0]
    assert bool(probability[1] > 0.9) == (direction != "in")
    torch.testing.assert_close(probability[4], model.prior[0])
