import pytest
import torch
from torch.nn.functional import normalize

from gcnsl import InputError
from gcnsl.graph import from_arrays
from gcnsl.nn import GCNSLPlus
from gcnsl.nn.config import GCNSLPlusConfig
from gcnsl.nn.gcn_sl_plus import contrastive_loss

from .cases import CLASSES, D, N, P, drawn, small_graph

FIXED = {"mean_degree": None, "epsilon": 0.3, "hidden_channels": P, "similarity_channels": 3}


def directed_graph():
    data = small_graph()
    once = data.edge_index[:, data.edge_index[0] < data.edge_index[1]]
    return from_arrays(data.x, once, data.y, directed=True)


def built(data, **options):
    config = GCNSLPlusConfig(**(FIXED | options))
    return drawn(config.build(D, CLASSES, N)).eval(), config.inputs(data, None, seed=0)


def dense_logits(model: GCNSLPlus, data, *, direction: str, normalized: bool = False) -> torch.Tensor:
    """The equations of the class, with matrices of all pairs."""
    arcs = torch.zeros(N, N)
    arcs[tuple(data.arc_index)] = 1.0
    arcs.fill_diagonal_(0)
    either = torch.maximum(arcs, arcs.T)
    sides = {"out": [arcs], "in": [arcs.T], "both": [arcs, arcs.T], "undirected": [either]}[direction]
    x, links = data.x, torch.cat(sides, dim=1)
    w = dict(model.named_parameters())
    h = (x @ w["lin_x.weight"].T).relu()
    branches = [h]
    for a in sides:
        a_hat = a / a.sum(dim=1, keepdim=True).clamp(min=1)
        branches += [a_hat @ h, a_hat @ a_hat @ h]
    for kind, rows in (("neighbours_heads", links), ("features_heads", x)):
        for number in range(len(getattr(model, kind))):
            z = normalize(rows @ w[f"{kind}.{number}.similarity.weight"].T, dim=1)
            s = z @ z.T
            a_star = torch.where(s >= 0.3, s, 0.0) * (1 - torch.eye(N))
            branches.append(a_star @ h / a_star.sum(dim=1, keepdim=True).clamp(min=1e-9))
    branches.append((links @ w["lin_links.weight"].T).relu())
    if normalized:
        branches = [normalize(branch, dim=1) for branch in branches]
    return (w["gate"] * torch.cat(branches, dim=1)).relu() @ w["lin_out.weight"].T


@pytest.mark.parametrize("direction", ["out", "in", "both", "undirected"])
@pytest.mark.parametrize("normalized", [False, True])
def test_it_computes_its_equations(direction, normalized) -> None:
    data = directed_graph()
    options = {"direction": direction, "features_heads": 2, "feature_norm": "none", "normalize_branches": normalized}
    model, inputs = built(data, **options)
    expected = dense_logits(model, data, direction=direction, normalized=normalized)
    torch.testing.assert_close(model(*inputs), expected, rtol=1e-4, atol=1e-4)


def test_dropout_on_links_is_for_training_and_the_structure_branch_only() -> None:
    model, inputs = built(directed_graph(), link_dropout=0.5, input_dropout=0.0)
    whole, dropped = list(model.each_branch(*inputs)), list(model.train().each_branch(*inputs))
    for kept, branch in zip(whole[:-1], dropped[:-1], strict=True):
        torch.testing.assert_close(branch, kept)
    weight = model.lin_links.weight.T
    draws = torch.stack([[*model.each_branch(*inputs)][-1] for _ in range(200)])
    assert len(draws.flatten(1).unique(dim=0)) > 100
    of_one_link = next(row for row in range(N) if inputs[1].csr.to_dense()[row].sum() == 1)
    neighbour = int(inputs[1].csr.to_dense()[of_one_link].argmax())
    doubled = (2 * weight[neighbour]).relu()  # a single link is lost, or counts twice
    for row in draws[:, of_one_link].unique(dim=0):
        assert torch.equal(row, torch.zeros_like(row)) or torch.allclose(row, doubled)


def test_the_extra_loss_is_the_contrastive_term_of_every_head() -> None:
    data = directed_graph()
    model, inputs = built(data, features_heads=1, contrast=0.5, temperature=0.2)
    nodes = torch.arange(0, N, 2)
    expected = sum(
        contrastive_loss(
            head.directions(rows)[nodes], data.y[nodes], classes=model.lin_out.out_features, temperature=0.2
        )
        for head, rows in ((model.neighbours_heads[0], inputs[1]), (model.features_heads[0], inputs[0]))
    )
    torch.testing.assert_close(model.extra_loss(*inputs, y=data.y, nodes=nodes), 0.5 * expected)
    off, _ = built(data, contrast=0)
    assert off.extra_loss(*inputs, y=data.y, nodes=nodes) == 0


def test_weights_of_links_have_their_own_decay_and_rate() -> None:
    model, _ = built(directed_graph(), features_heads=1, link_decay=0.25, link_lr=0.5)
    rest, of_links = model.parameter_groups(0.125)
    assert rest["weight_decay"] == 0.125
    assert "lr" not in rest
    assert (of_links["weight_decay"], of_links["lr"]) == (0.25, 0.5)
    assert len(of_links["params"]) == 3
    assert {id(p) for group in (rest, of_links) for p in group["params"]} == {id(p) for p in model.parameters()}
    bare, _ = built(directed_graph(), neighbours_heads=0, structure_branch=False)
    assert len(bare.parameter_groups(0.1)) == 1


@pytest.mark.parametrize("norm", ["row", "symmetric"])
@pytest.mark.parametrize("loops", [False, True])
def test_new_nodes_are_predicted_the_same_one_by_one_or_together(norm, loops) -> None:
    data = directed_graph()
    options = {"adjacency_norm": norm, "self_loops": loops, "direction": "both"}
    model, inputs = built(data, **options)
    config = GCNSLPlusConfig(**(FIXED | options))
    more = torch.randn(2, D, generator=torch.Generator().manual_seed(4)).abs()

    def grown(x, arcs):
        graph = from_arrays(torch.cat([data.x, x]), torch.cat([data.arc_index, torch.tensor(arcs).T], dim=1),
                            data.y.tolist() + [-1] * len(x), directed=True)  # fmt: skip
        graph.known_nodes = N
        return model(*config.inputs(graph, None, seed=0), known=N)

    together = grown(more, [(N, 3), (5, N), (N, N + 1), (N + 1, 7), (N + 1, N)])
    torch.testing.assert_close(together[:N], model(*inputs), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(together[N], grown(more[:1], [(N, 3), (5, N)])[N], rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(together[N + 1], grown(more[1:], [(N, 7)])[N], rtol=1e-4, atol=1e-4)


def test_evidence_adds_up_to_the_difference_of_logits() -> None:
    data = directed_graph()
    model, inputs = built(data, direction="both", features_heads=2)
    evidence = model.evidence(*inputs, node=4, one=1, other=0)
    logits = model(*inputs)[4].detach()
    assert sum(evidence.values()) == pytest.approx(float(logits[1] - logits[0]), abs=1e-4)
    assert list(evidence) == [
        "own features",
        "A out (1 step)",
        "A out (2 steps)",
        "A in (1 step)",
        "A in (2 steps)",
        "A* by links",
        "A* by features 1",
        "A* by features 2",
        "links",
    ]


def test_the_learned_graph_has_the_edges_of_all_heads() -> None:
    model, inputs = built(directed_graph(), features_heads=1)
    edges, similarity = model.learned_graph(*inputs)
    parts = [model.neighbours_heads[0].edges(inputs[1]), model.features_heads[0].edges(inputs[0])]
    assert edges.equal(torch.cat([part for part, _ in parts], dim=1))
    assert similarity.min() >= 0.3
    assert model.learns_graph
    bare, inputs = built(directed_graph(), neighbours_heads=0)
    assert not bare.learns_graph
    with pytest.raises(InputError, match="no learned graph: build it with neighbours_heads"):
        bare.learned_graph(*inputs)
