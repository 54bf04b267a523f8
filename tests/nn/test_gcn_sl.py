import numpy as np
import pytest
import torch

from gcnsl import InputError, synthetic
from gcnsl.graph import from_arrays
from gcnsl.nn import GCNSL, GCNSLConfig, normalized_adjacency, shift_features
from gcnsl.sparse import SparseMatrix

from .cases import small_graph

N, D, C, P, Q, CLASSES = 24, 9, 4, 3, 5, 3

pytestmark = pytest.mark.usefixtures("double")


@pytest.fixture
def graph():
    data = synthetic(n=N, h=0.4, classes=CLASSES, degree=3, features=D, seed=1)
    x = shift_features(data.x.double())
    spectral = torch.randn(N, C, generator=torch.Generator().manual_seed(0))
    return x, data.edge_index, spectral


def model(**options) -> GCNSL:
    torch.manual_seed(0)
    built = GCNSL(D, P, CLASSES, **({"spectral_channels": C, "similarity_channels": Q} | options))
    torch.nn.init.normal_(built.gate)
    return built.eval()


def transcription(net: GCNSL, x, edges, spectral, *, K: int, epsilon: float, merge: str, known: int = N) -> np.ndarray:
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
    x, edges, spectral = graph
    net = model(merge=merge, rounds=rounds, epsilon=epsilon)
    features = SparseMatrix(x.to_sparse_csr()) if sparse else x
    logits = net(features, normalized_adjacency(edges, N), spectral)
    expected = transcription(net, x, edges, spectral, K=rounds, epsilon=epsilon, merge=merge)
    np.testing.assert_allclose(logits.detach().numpy(), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("epsilon", [0.3, 0.9, 0.999])
@pytest.mark.parametrize("known", [1, 15, N - 1])
@pytest.mark.parametrize("at_once", [4, 1000])
def test_new_nodes_are_connected_to_known_ones_and_to_themselves(graph, monkeypatch, epsilon, known, at_once) -> None:
    monkeypatch.setattr("gcnsl.nn.gcn_sl._NEW_ROWS", at_once)
    x, edges, spectral = graph
    net = model(epsilon=epsilon, rounds=2)
    logits = net(x, normalized_adjacency(edges, N), spectral, known=known)
    expected = transcription(net, x, edges, spectral, K=2, epsilon=epsilon, merge="concat", known=known)
    np.testing.assert_allclose(logits.detach().numpy(), expected, rtol=1e-9, atol=1e-12)


def test_a_new_node_without_a_direction_is_like_no_node(graph) -> None:
    x, edges, spectral = graph
    x = x.clone()
    x[-1] = 0
    net = model(epsilon=0.3)
    h, *_, over_learned = net.branches(x, normalized_adjacency(edges, N), spectral, known=N - 1)
    assert over_learned[-1].abs().sum() == 0
    assert h[-1].abs().sum() > 0


def test_gradients_reach_every_parameter_and_are_right(graph) -> None:
    x, edges, spectral = graph
    net, adjacency = model(epsilon=0.5, rounds=2), normalized_adjacency(edges, N)
    loss = torch.nn.functional.cross_entropy(net(x, adjacency, spectral), torch.arange(N) % CLASSES)
    loss.backward()
    for name, parameter in net.named_parameters():
        direction = torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1))
        step, losses = 1e-6, []
        for sign in (1, -1):
            with torch.no_grad():
                parameter.add_(sign * step * direction)
                losses.append(torch.nn.functional.cross_entropy(net(x, adjacency, spectral), torch.arange(N) % CLASSES))
                parameter.sub_(sign * step * direction)
        slope = float(losses[0] - losses[1]) / (2 * step)
        assert float((parameter.grad * direction).sum()) == pytest.approx(slope, rel=1e-5, abs=1e-9), name
        assert parameter.grad.abs().sum() > 0, name


def test_one_round_holds_h_twice(graph) -> None:
    x, edges, spectral = graph
    net, adjacency = model(rounds=1), normalized_adjacency(edges, N)
    h, before, after, _ = net.branches(x, adjacency, spectral)
    assert before is h
    assert torch.allclose(after, adjacency @ h)
    assert net.branch_names == ["own features", "own features", "A (1 step)", "A*"]


def test_without_the_learned_graph_is_zeroing_its_branch(graph) -> None:
    x, edges, spectral = graph
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
    assert torch.allclose(full(x, adjacency, spectral), less(x, adjacency, spectral))


def test_without_either_graph_edges_do_not_matter(graph) -> None:
    x, _, spectral = graph
    net = model(use_adjacency=False, use_reconnected=False)
    changed = x.clone()
    changed[1:] = 0
    assert torch.allclose(net(x, None, spectral)[0], net(changed, spectral=spectral)[0])


def test_without_spectral_features(graph) -> None:
    x, edges, spectral = graph
    net, adjacency = model(spectral_channels=0), normalized_adjacency(edges, N)
    assert net(x, adjacency).equal(net(x, adjacency, spectral))
    assert len(net.gate) == 4 * P


def test_without_spectral_features_the_average_is_that_with_zeros(graph) -> None:
    x, edges, spectral = graph
    adjacency = normalized_adjacency(edges, N)
    without, with_f = (model(spectral_channels=channels, merge="average") for channels in (0, C))
    with_f.load_state_dict(without.state_dict() | {"lin_spectral.weight": torch.ones(P, C)})
    assert torch.allclose(without(x, adjacency), with_f(x, adjacency, torch.zeros_like(spectral)))


def test_dropout_only_in_training_and_never_on_similarities(graph) -> None:
    x, edges, spectral = graph
    net, adjacency = model(dropout=0.5), normalized_adjacency(edges, N)
    assert net(x, adjacency, spectral).equal(net(x, adjacency, spectral))
    directions = net.directions(x)
    net.train()
    for features in (x, SparseMatrix(x.to_sparse_csr())):
        assert not net(features, adjacency, spectral).equal(net(features, adjacency, spectral))
        assert torch.allclose(net.directions(features), directions)


def test_the_learned_graph_is_what_the_model_uses(graph) -> None:
    x, *_ = graph
    net = model(epsilon=0.4)
    assert net.learns_graph
    (source, target), weight = net.learned_graph(x)
    z = net.directions(x)
    similarity = z @ z.T
    expected = torch.where(similarity >= 0.4, similarity, 0.0)
    learned = torch.zeros(N, N)
    learned[source, target] = weight
    assert torch.allclose(learned, expected)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"adjacency": None}, "edge_index is None: give the edges, or build the model with use_adjacency=False"),
        ({"spectral": None}, r"spectral is None: give F \(24 × 4\)"),
        ({"spectral": torch.ones(24, 3)}, r"spectral has shape \(24, 3\): give F \(24 × 4\)"),
        ({"known": 0}, r"known\(0\) must be from 1 to 24: x has no more rows"),
        ({"known": 25}, r"known\(25\) must be from 1 to 24"),
    ],
)
def test_inputs_that_do_not_fit_are_named(graph, change, message) -> None:
    x, edges, spectral = graph
    given = {"adjacency": normalized_adjacency(edges, N), "spectral": spectral} | change
    with pytest.raises(InputError, match=message):
        model()(x, given.pop("adjacency"), given.pop("spectral"), **given)


def test_without_a_learned_graph_there_are_no_directions(graph) -> None:
    net = model(use_reconnected=False)
    assert not net.learns_graph
    for ask in (net.directions, net.learned_graph):
        with pytest.raises(InputError, match="the model has no learned graph: build it with use_reconnected=True"):
            ask(graph[0])


@pytest.mark.parametrize(
    "options", [{}, {"rounds": 1}, {"merge": "average"}, {"use_adjacency": False}, {"use_reconnected": False}]
)
def test_evidence_adds_up_to_the_difference_of_logits(graph, options) -> None:
    x, edges, spectral = graph
    net, inputs = model(**options), (x, normalized_adjacency(edges, N), spectral)
    logits = net(*inputs).detach()
    net.train()
    for node in (0, N - 1):
        evidence = net.evidence(*inputs, node=node, one=2, other=0)
        assert sum(evidence.values()) == pytest.approx(float(logits[node, 2] - logits[node, 0]))
        assert list(evidence) == list(dict.fromkeys(net.branch_names))
    assert net.training


@pytest.mark.parametrize("rows", [slice(3, 9), slice(0, N, 5), slice(20, 99), slice(-1, None)])
def test_rows_of_the_learned_graph_are_those_of_the_whole(graph, rows) -> None:
    net = model(epsilon=0.4)
    edges, similarity = net.learned_graph(*graph)
    wanted = torch.isin(edges[0], torch.arange(N)[rows])
    some, their_similarity = net.learned_graph(*graph, rows=rows)
    assert some.equal(edges[:, wanted])
    assert their_similarity.allclose(similarity[wanted])


@pytest.mark.parametrize("scale", [1e-15, 1e-30, 1e15])
def test_the_length_of_q_changes_no_direction(graph, scale) -> None:
    x, edges, spectral = (part.float() if part.is_floating_point() else part for part in graph)
    net = model(epsilon=0.5).float()
    adjacency = SparseMatrix(normalized_adjacency(edges, N).to_dense().float().to_sparse_csr())
    before = net.directions(x)
    logits = net(x, adjacency, spectral)
    with torch.no_grad():
        net.similarity.weight *= scale
    torch.testing.assert_close(net.directions(x), before)
    torch.testing.assert_close(net(x, adjacency, spectral), logits)
    net(x, adjacency, spectral).sum().backward()
    assert net.similarity.weight.grad.isfinite().all()


def test_a_q_of_zero_connects_nobody(graph) -> None:
    x, edges, spectral = graph
    net = model()
    torch.nn.init.zeros_(net.similarity.weight)
    assert net.directions(x).eq(0).all()
    net(x, normalized_adjacency(edges, N), spectral).sum().backward()
    assert net.similarity.weight.grad.eq(0).all()


def test_the_learned_graph_can_be_held_fixed(graph) -> None:
    x, edges, spectral = graph
    net, adjacency = model(epsilon=0.5), normalized_adjacency(edges, N)
    own = net.directions(x)
    assert net(x, adjacency, spectral, directions=own).equal(net(x, adjacency, spectral))
    other = net.directions(x.flip(0))
    before, after = (net.branches(x, adjacency, spectral, directions=z) for z in (own, other))
    assert all(a.equal(b) for a, b in zip(before[:-1], after[:-1], strict=True))
    assert not before[-1].equal(after[-1])


def test_the_row_of_a_node_without_features_is_shifted() -> None:
    config = GCNSLConfig(feature_shift=0.25)
    assert config.empty_row(D, seed=3).equal(shift_features(torch.zeros(2, D), 0.25, seed=3)[1])


@pytest.mark.parametrize("options", [{"n_components": 0}, {"use_spectral": False}])
@pytest.mark.parametrize("sparse", [False, True])
def test_without_spectral_features_nothing_is_precomputed(sparse, options) -> None:
    data, config = small_graph(), GCNSLConfig(**options)
    data.x = data.x.double()
    data.x = data.x.to_sparse_csr() if sparse else data.x
    assert config.precompute(data, seed=0) is None
    assert config.from_state({}, {}, data, seed=0) is None
    *_, spectral = inputs = config.inputs(data, None, seed=0)
    assert spectral.layout == torch.strided
    assert spectral.shape == (N, 0)
    assert config.build(D, CLASSES, N)(*inputs).shape == (N, CLASSES)


@pytest.mark.parametrize("method", ["esc-anch", "esc", "sc"])
def test_spectral_features_come_back_from_their_state_and_grow(method) -> None:
    data = small_graph()
    data.x = data.x.double()
    grown = from_arrays(torch.cat([data.x, data.x[:2] + 0.5]), data.edge_index)
    config = GCNSLConfig(n_components=3, spectral_method=method)
    columns = config.precompute(data, seed=0)
    plain, tensors = columns.state()
    again = config.from_state(plain, tensors, data, seed=0)
    assert "values" in tensors, "the caller's state is left as it is"
    assert again.values.equal(columns.values)
    assert columns.grown(data) is columns
    new, later = columns.grown(grown).values, again.grown(grown).values
    assert new.equal(later)
    assert new[:N].equal(columns.values)
    assert new.shape == (N + 2, 3)
