import numpy as np
import pytest
import torch

from gcnsl import InputError, synthetic
from gcnsl.nn import GCNSL, SparseMatrix, normalized_adjacency, shift_features

N, D, C, P, Q, CLASSES = 24, 9, 4, 3, 5, 3


@pytest.fixture(autouse=True)
def _double():
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.double)
    yield
    torch.set_default_dtype(before)


@pytest.fixture
def graph():
    data = synthetic(n=N, h=0.4, classes=CLASSES, degree=3, features=D, seed=1)
    x = shift_features(data.x.double())
    spectral = torch.randn(N, C, generator=torch.Generator().manual_seed(0))
    return x, spectral, data.edge_index


def model(**options) -> GCNSL:
    torch.manual_seed(0)
    built = GCNSL(D, options.pop("spectral_channels", C), P, CLASSES, similarity_channels=Q, **options)
    torch.nn.init.normal_(built.gate)
    return built.eval()


def transcription(net: GCNSL, x, spectral, edges, *, K: int, epsilon: float, merge: str, known: int = N) -> np.ndarray:
    """The paper's equations, in its order, with dense matrices; new nodes are like known ones and themselves."""
    X, F = x.numpy(), spectral.numpy()
    weights = {name: value.detach().numpy() for name, value in net.named_parameters()}
    W0X, W0F, W1 = (weights[f"{name}.weight"].T for name in ("lin_x", "lin_spectral", "lin_out"))
    Qm, w = weights["similarity.weight"].T, weights["gate"]

    A = np.zeros((N, N))
    A[tuple(edges.numpy())] = 1
    A_tilde = A + np.eye(N)
    D_tilde = A_tilde.sum(1)
    A_hat = A_tilde / np.sqrt(D_tilde[:, None] * D_tilde[None, :])

    S = np.empty((N, N))
    for i in range(N):
        for j in range(N):
            a, b = X[i] @ Qm, X[j] @ Qm
            S[i, j] = a @ b / (np.linalg.norm(a) * np.linalg.norm(b))
    for i in range(N):
        for j in range(known, N):
            S[i, j] = 1 if i == j else 0
    A_star = np.where(epsilon > S, 0, S)
    A_star_hat = A_star / A_star.sum(1, keepdims=True)

    if merge == "average":
        H = np.maximum((X @ W0X + F @ W0F) / 2, 0)
    else:
        H = np.maximum(np.concatenate([X @ W0X, F @ W0F], axis=1), 0)
    H_A = [H]
    for k in range(1, K + 1):
        H_A.append(A_hat @ H_A[k - 1])
    H_cb = np.concatenate([H, H_A[K - 1], H_A[K], A_star_hat @ H], axis=1)
    H_final = np.maximum(w * H_cb, 0)
    return H_final @ W1


@pytest.mark.parametrize("merge", ["concat", "average"])
@pytest.mark.parametrize("rounds", [1, 2, 4])
@pytest.mark.parametrize("epsilon", [0.3, 0.9])
@pytest.mark.parametrize("sparse", [False, True])
def test_is_the_paper_to_the_letter(graph, merge, rounds, epsilon, sparse) -> None:
    x, spectral, edges = graph
    net = model(merge=merge, rounds=rounds, epsilon=epsilon)
    features = SparseMatrix(x.to_sparse_csr()) if sparse else x
    logits = net(features, spectral, normalized_adjacency(edges, N))
    expected = transcription(net, x, spectral, edges, K=rounds, epsilon=epsilon, merge=merge)
    np.testing.assert_allclose(logits.detach().numpy(), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("epsilon", [0.3, 0.9, 0.999])
@pytest.mark.parametrize("known", [1, 15, N - 1])
@pytest.mark.parametrize("at_once", [4, 1000])
def test_new_nodes_are_connected_to_known_ones_and_to_themselves(graph, monkeypatch, epsilon, known, at_once) -> None:
    monkeypatch.setattr("gcnsl.nn.gcn_sl._NEW_ROWS", at_once)
    x, spectral, edges = graph
    net = model(epsilon=epsilon, rounds=2)
    logits = net(x, spectral, normalized_adjacency(edges, N), known=known)
    expected = transcription(net, x, spectral, edges, K=2, epsilon=epsilon, merge="concat", known=known)
    np.testing.assert_allclose(logits.detach().numpy(), expected, rtol=1e-9, atol=1e-12)


def test_where_no_node_is_new_nothing_changes(graph) -> None:
    x, spectral, edges = graph
    net, adjacency = model(epsilon=0.3), normalized_adjacency(edges, N)
    assert net(x, spectral, adjacency, known=N).equal(net(x, spectral, adjacency))


def test_a_new_node_without_a_direction_is_like_no_node(graph) -> None:
    x, spectral, _ = graph
    x = x.clone()
    x[-1] = 0
    net = model(epsilon=0.3)
    h = net.enhanced_features(x, spectral)
    assert net._reconnect(net.directions(x), h, N - 1)[-1].abs().sum() == 0
    assert h[-1].abs().sum() > 0


def test_gradients_reach_every_parameter_and_are_right(graph) -> None:
    x, spectral, edges = graph
    net, adjacency = model(epsilon=0.5, rounds=2), normalized_adjacency(edges, N)
    loss = torch.nn.functional.cross_entropy(net(x, spectral, adjacency), torch.arange(N) % CLASSES)
    loss.backward()
    for name, parameter in net.named_parameters():
        direction = torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1))
        step, losses = 1e-6, []
        for sign in (1, -1):
            with torch.no_grad():
                parameter.add_(sign * step * direction)
                losses.append(torch.nn.functional.cross_entropy(net(x, spectral, adjacency), torch.arange(N) % CLASSES))
                parameter.sub_(sign * step * direction)
        slope = float(losses[0] - losses[1]) / (2 * step)
        assert float((parameter.grad * direction).sum()) == pytest.approx(slope, rel=1e-5, abs=1e-9), name
        assert parameter.grad.abs().sum() > 0, name


def test_relabelling_nodes_permutes_the_output(graph) -> None:
    x, spectral, edges = graph
    net = model(epsilon=0.5, rounds=2)
    order = torch.randperm(N, generator=torch.Generator().manual_seed(0))
    new_number = torch.argsort(order)
    plain = net(x, spectral, normalized_adjacency(edges, N))
    relabelled = net(x[order], spectral[order], normalized_adjacency(new_number[edges], N))
    assert torch.allclose(relabelled, plain[order])


def test_one_round_holds_h_twice(graph) -> None:
    x, spectral, edges = graph
    net, adjacency = model(rounds=1), normalized_adjacency(edges, N)
    h = net.enhanced_features(x, spectral)
    before, after = net._aggregate(h, adjacency)
    assert before is h
    assert torch.allclose(after, adjacency @ h)


def test_without_the_learned_graph_is_zeroing_its_branch(graph) -> None:
    x, spectral, edges = graph
    adjacency = normalized_adjacency(edges, N)
    full, less = model(), model(use_reconnected=False)
    width = len(less.gate)
    state = full.state_dict()
    state["gate"][width:] = 0
    full.load_state_dict(state)
    less.load_state_dict(
        {
            **{name: value for name, value in state.items() if not name.startswith("similarity")},
            "gate": state["gate"][:width],
            "lin_out.weight": state["lin_out.weight"][:, :width],
        }
    )
    assert torch.allclose(full(x, spectral, adjacency), less(x, spectral, adjacency))


def test_without_either_graph_edges_do_not_matter(graph) -> None:
    x, spectral, _ = graph
    net = model(use_adjacency=False, use_reconnected=False)
    changed = x.clone()
    changed[1:] = 0
    assert torch.allclose(net(x, spectral)[0], net(changed, spectral)[0])


def test_without_spectral_features(graph) -> None:
    x, spectral, edges = graph
    net, adjacency = model(spectral_channels=0), normalized_adjacency(edges, N)
    assert net(x, None, adjacency).equal(net(x, spectral, adjacency))
    assert len(net.gate) == 4 * P


def test_dropout_only_in_training_and_never_on_similarities(graph) -> None:
    x, spectral, edges = graph
    net, adjacency = model(dropout=0.5), normalized_adjacency(edges, N)
    assert net(x, spectral, adjacency).equal(net(x, spectral, adjacency))
    directions = net.directions(x)
    net.train()
    for features in (x, SparseMatrix(x.to_sparse_csr())):
        assert not net(features, spectral, adjacency).equal(net(features, spectral, adjacency))
        assert torch.allclose(net.directions(features), directions)


def test_the_learned_graph_is_what_the_model_uses(graph) -> None:
    x, *_ = graph
    net = model(epsilon=0.4)
    (source, target), weight = net.reconnected_graph(x)
    z = net.directions(x)
    similarity = z @ z.T
    expected = torch.where(similarity >= 0.4, similarity, 0.0)
    learned = torch.zeros(N, N)
    learned[source, target] = weight
    assert torch.allclose(learned, expected)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"merge": "sum"}, r"merge\('sum'\) must be one of concat, average"),
        ({"epsilon": 0.0}, r"epsilon\(0.0\) must be in \(0, 1\]"),
        ({"dropout": 1.0}, r"dropout\(1.0\) must be in \[0, 1\)"),
        ({"rounds": 0}, r"rounds\(0\) must be >= 1"),
        ({"spectral_channels": -1}, r"spectral_channels\(-1\) must be >= 0"),
    ],
)
def test_bad_arguments(arguments, message) -> None:
    with pytest.raises(InputError, match=message):
        model(**arguments)


def test_missing_inputs_are_named(graph) -> None:
    x, spectral, edges = graph
    with pytest.raises(InputError, match="adjacency is None"):
        model()(x, spectral)
    with pytest.raises(InputError, match=r"spectral is None: give F \(n × 4\)"):
        model()(x, None, normalized_adjacency(edges, N))
    with pytest.raises(InputError, match="use_reconnected=False"):
        model(use_reconnected=False).directions(x)


def test_repr() -> None:
    assert repr(model(rounds=2)) == "GCNSL(9 + 4 → 3, merge='concat', rounds=2, epsilon=0.8)"


@pytest.mark.parametrize("scale", [1e-15, 1e-30, 1e15])
def test_the_length_of_q_changes_no_direction(graph, scale) -> None:
    x, spectral, edges = (part.float() if part.is_floating_point() else part for part in graph)
    net = model(epsilon=0.5).float()
    adjacency = SparseMatrix(normalized_adjacency(edges, N).to_dense().float().to_sparse_csr())
    before = net.directions(x)
    logits = net(x, spectral, adjacency)
    with torch.no_grad():
        net.similarity.weight *= scale
    torch.testing.assert_close(net.directions(x), before)
    torch.testing.assert_close(net(x, spectral, adjacency), logits)
    net(x, spectral, adjacency).sum().backward()
    assert net.similarity.weight.grad.isfinite().all()


def test_a_q_of_zero_connects_nobody(graph) -> None:
    x, spectral, edges = graph
    net = model()
    torch.nn.init.zeros_(net.similarity.weight)
    assert net.directions(x).eq(0).all()
    net(x, spectral, normalized_adjacency(edges, N)).sum().backward()
    assert net.similarity.weight.grad.eq(0).all()
