import pytest
import torch

from gcnsl import InputError
from gcnsl.nn import GCNSL, normalized_adjacency, shift_features
from gcnsl.sparse import SparseMatrix

from .cases import CLASSES, D, N, assert_same, both_forms, both_sides, dense_adjacency, small_graph

C, P, Q = 4, 3, 5

pytestmark = pytest.mark.usefixtures("double")


@pytest.fixture
def graph():
    """X, A, Â and F."""
    data = small_graph()
    spectral = torch.randn(N, C, generator=torch.Generator().manual_seed(0))
    return shift_features(data.x.double()), dense_adjacency(data), normalized_adjacency(data.edge_index, N), spectral


def model(**options) -> GCNSL:
    torch.manual_seed(0)
    built = GCNSL(D, P, CLASSES, **({"spectral_channels": C, "similarity_channels": Q} | options))
    torch.nn.init.normal_(built.gate)
    return built.eval()


def transcription(net: GCNSL, X, A, F, *, known: int = N) -> torch.Tensor:
    """The paper's equations, in its order, with dense matrices; new nodes are like known ones and themselves."""
    config, A_hat = net.config, both_sides(A.clone().fill_diagonal_(1))
    S = torch.zeros(N, N)
    if net.learns_graph:
        U = X @ net.similarity.weight.T
        S = U @ U.T / (U.norm(dim=1)[:, None] * U.norm(dim=1))
    among_new = torch.arange(N) >= known
    S = torch.where(among_new, torch.eye(N), S)
    A_star = torch.where(config.epsilon > S, 0, S)
    from_x, from_f = X @ net.lin_x.weight.T, None if net.lin_spectral is None else F @ net.lin_spectral.weight.T
    if config.merge == "average":
        H = torch.relu((from_x + (0 if from_f is None else from_f)) / 2)
    else:
        H = torch.relu(from_x if from_f is None else torch.cat([from_x, from_f], dim=1))
    H_A = [H]
    for k in range(1, config.rounds + 1):
        H_A.append(A_hat @ H_A[k - 1])
    H_cb = [H, *(H_A[-2:] if config.use_adjacency else [])]
    H_cb += [A_star / A_star.sum(1, keepdim=True) @ H] if net.learns_graph else []
    return torch.relu(net.gate * torch.cat(H_cb, dim=1)) @ net.lin_out.weight.T


@pytest.mark.parametrize("merge", ["concat", "average"])
@pytest.mark.parametrize(
    "options",
    [
        {"rounds": 1, "epsilon": 0.3},
        {"rounds": 4, "epsilon": 0.9},
        {"use_reconnected": False},
        {"use_adjacency": False},
        {"spectral_channels": 0},
    ],
    ids=str,
)
def test_is_the_paper_to_the_letter(graph, merge, options) -> None:
    x, A, adjacency, spectral = graph
    net = model(merge=merge, **options)
    for features in both_forms(x):
        assert_same(net, net(features, adjacency, spectral), transcription(net, x, A, spectral))


@pytest.mark.parametrize(("epsilon", "known", "at_once"), [(0.3, 1, 4), (0.3, 15, 1000), (0.999, N - 1, 4)])
def test_new_nodes_are_connected_to_known_ones_and_to_themselves(graph, monkeypatch, epsilon, known, at_once) -> None:
    monkeypatch.setattr("gcnsl.nn.gcn_sl._NEW_ROWS", at_once)
    x, A, adjacency, spectral = graph
    net = model(epsilon=epsilon)
    torch.testing.assert_close(
        net(x, adjacency, spectral, known=known), transcription(net, x, A, spectral, known=known)
    )


def test_dropout_never_reaches_similarities(graph) -> None:
    x, _, adjacency, spectral = graph
    net = model(dropout=0.5)
    directions = net.directions(x)
    net.train()
    for features in both_forms(x):
        assert not net(features, adjacency, spectral).equal(net(features, adjacency, spectral))
        assert torch.allclose(net.directions(features), directions)


@pytest.mark.parametrize("rows", [None, slice(3, 9), slice(0, N, 5), slice(20, 99), slice(-1, None)])
def test_the_learned_graph_is_what_the_model_uses(graph, rows) -> None:
    net = model(epsilon=0.4)
    (source, target), weight = net.learned_graph(graph[0], rows=rows)
    z = net.directions(graph[0])
    expected = torch.where(z @ z.T >= 0.4, z @ z.T, 0.0)
    if rows is not None:
        expected *= torch.isin(torch.arange(N), torch.arange(N)[rows])[:, None]
    torch.testing.assert_close(torch.zeros(N, N).index_put((source, target), weight), expected)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"adjacency": None}, "edge_index is missing: give the edges"),
        ({"spectral": None}, r"spectral is None: give F \(24 × 4\)"),
        ({"spectral": torch.ones(24, 3)}, r"spectral has shape \(24, 3\): give F \(24 × 4\)"),
        ({"known": 0}, r"known\(0\) must be from 1 to 24: x has no more rows"),
        ({"known": 25}, r"known\(25\) must be from 1 to 24"),
    ],
)
def test_inputs_that_do_not_fit_are_named(graph, change, message) -> None:
    given = {"adjacency": graph[2], "spectral": graph[3]} | change
    with pytest.raises(InputError, match=message):
        model()(graph[0], given.pop("adjacency"), given.pop("spectral"), **given)


@pytest.mark.parametrize("options", [{}, {"rounds": 1}, {"use_adjacency": False}, {"use_reconnected": False}])
def test_evidence_adds_up_to_the_difference_of_logits(graph, options) -> None:
    x, _, adjacency, spectral = graph
    net = model(**options)
    logits = net(x, adjacency, spectral).detach()
    net.train()
    for node in (0, N - 1):
        evidence = net.evidence(x, adjacency, spectral, node=node, one=2, other=0)
        assert sum(evidence.values()) == pytest.approx(float(logits[node, 2] - logits[node, 0]))
        assert list(evidence) == list(dict.fromkeys(net.branch_names))
    assert net.training


@pytest.mark.parametrize("scale", [1e-15, 1e-30, 1e15])
def test_the_length_of_q_changes_no_direction(graph, scale) -> None:
    x, _, adjacency, spectral = graph
    x, spectral, net = x.float(), spectral.float(), model(epsilon=0.5).float()
    adjacency = SparseMatrix(adjacency.to_dense().float().to_sparse_csr())
    before = net.directions(x)
    logits = net(x, adjacency, spectral)
    with torch.no_grad():
        net.similarity.weight *= scale
    torch.testing.assert_close(net.directions(x), before)
    torch.testing.assert_close(net(x, adjacency, spectral), logits)
    net(x, adjacency, spectral).sum().backward()
    assert net.similarity.weight.grad.isfinite().all()
