import pytest
import torch
from torch.nn.functional import layer_norm

from gcnsl import InputError
from gcnsl.nn import ACMGCN, ACMGCNConfig

from .cases import CLASSES, D, N, P, assert_same, both_forms, dense_adjacency, directed_graph, drawn, row_means


def mix(H: torch.Tensor, A_hat: torch.Tensor, A: torch.Tensor, layer, relu_first: bool) -> torch.Tensor:
    """One layer, channel by channel and node by node."""
    inner, outer = (torch.relu, lambda x: x) if relu_first else (lambda x: x, torch.relu)
    low, high, own = (inner(H @ W.T) for W in layer.lin.weight.chunk(3))
    channels = [outer(A_hat @ low), outer((torch.eye(N) - A_hat) @ high), outer(own)]
    if layer.lin_links is not None:
        channels.append(torch.relu(A @ layer.lin_links.weight.T))
    rows = []
    for i in range(N):
        scores = [
            torch.sigmoid(layer_norm(H_c[i], H_c[i].shape, norm.weight, norm.bias) @ score.weight[0])
            for H_c, norm, score in zip(channels, layer.norms, layer.scores, strict=True)
        ]
        shares = torch.softmax(layer.mix.weight @ torch.stack(scores) / len(channels), dim=0)
        rows.append(sum(share * H_c[i] for share, H_c in zip(shares, channels, strict=True)))
    return torch.stack(rows) * (1 if len(channels) == 4 else 3)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("structure", [True, False])
@pytest.mark.parametrize("residual", [True, False])
@pytest.mark.parametrize("relu_first", [True, False])
@pytest.mark.parametrize("direction", ["undirected", "out"])
def test_is_the_equation(structure, residual, relu_first, direction) -> None:
    data = directed_graph()
    x, A = data.x.double(), dense_adjacency(data, direction)
    A_hat = row_means(dense_adjacency(data, direction, loops=True))
    model = drawn(ACMGCN(D, P, CLASSES, N, structure=structure, residual=residual, relu_first=relu_first))
    H = torch.relu(mix(x, A_hat, A, model.first, relu_first))
    if residual:
        H = H + torch.relu(x @ model.skip.weight.T + model.skip.bias)
    expected = mix(H, A_hat, A, model.second, relu_first)
    _, *adjacencies = ACMGCNConfig(structure=structure, direction=direction).inputs(data, None, seed=0)
    assert len(adjacencies) == (2 if structure else 1)
    for features in both_forms(x):
        assert_same(model, model(features, *adjacencies), expected)


def test_the_structure_channel_needs_the_links() -> None:
    data = directed_graph()
    _, adjacency, _ = ACMGCNConfig().inputs(data, None, seed=0)
    with pytest.raises(InputError, match=r"links is None: give A, or build the model with structure=False"):
        ACMGCN(D, P, CLASSES, N)(data.x, adjacency)
