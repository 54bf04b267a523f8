import pytest
import torch

from gcnsl.methods import METHODS
from gcnsl.nn import FSGNN, FSGNNConfig
from gcnsl.training.state import RunState

from .cases import CLASSES, D, P, assert_same, both_forms, dense_adjacency, directed_graph, drawn


def row_sums(A: torch.Tensor) -> torch.Tensor:
    """D^-1/2 A D^-1/2 with the sums of rows at both ends, 1 instead of 0."""
    root = A.sum(1).clamp(min=1).rsqrt()
    return root[:, None] * A * root


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("hops", [1, 3])
@pytest.mark.parametrize("direction", ["undirected", "out"])
def test_is_the_equation(hops, direction) -> None:
    data = directed_graph()
    x = data.x.double()
    model = drawn(FSGNN(D, P, CLASSES, hops=hops))
    plain, looped = (row_sums(dense_adjacency(data, direction, loops=loops)) for loops in (False, True))
    S = [x, *(torch.linalg.matrix_power(A, k) @ x for A in (plain, looped) for k in range(1, hops + 1))]
    W = [*model.plain.lin.weight.split(P), *model.looped.lin.weight.split(P)]
    b = [*model.plain.bias.split(P), *model.looped.bias.split(P)]
    scales = model.selection.exp() / model.selection.exp().sum()
    H = [S[m] @ W[m].T + b[m] for m in range(2 * hops + 1)]
    H = [scales[m] * H[m] / H[m].norm(dim=1, keepdim=True) for m in range(2 * hops + 1)]
    expected = torch.relu(torch.cat(H, dim=1)) @ model.lin_out.weight.T + model.lin_out.bias
    _, *adjacencies = FSGNNConfig(direction=direction).inputs(data, None, seed=0)
    for features in both_forms(x):
        assert_same(model, model(features, *adjacencies), expected)


def test_the_selection_is_trained_with_a_rate_of_its_own() -> None:
    model = FSGNN(D, P, CLASSES, selection_lr=0.03, selection_weight_decay=0.2)
    others, selection = RunState(model, METHODS["fsgnn"].training).optimizer.param_groups
    assert selection["params"] == [model.selection]
    assert (selection["lr"], selection["weight_decay"]) == (0.03, 0.2)
    assert (others["lr"], others["weight_decay"]) == (METHODS["fsgnn"].training.lr, 5e-4)
    assert len(others["params"]) + 1 == len(list(model.parameters()))


def test_a_node_without_features_has_a_moderate_gradient() -> None:
    data = directed_graph()
    data.x = torch.zeros_like(data.x)
    model = FSGNN(D, P, CLASSES)
    _, *adjacencies = FSGNNConfig().inputs(data, None, seed=0)
    torch.nn.functional.cross_entropy(model(data.x, *adjacencies), data.y).backward()
    assert max(float(parameter.grad.abs().max()) for parameter in model.parameters()) < 100
