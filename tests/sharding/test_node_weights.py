import pytest
import torch
from torch import nn

from gcnsl.sharding.node_rows import divided
from gcnsl.sharding.node_weights import (
    add_up_gradients,
    all_columns,
    is_split,
    join_weights,
    own_columns,
    split_names,
    split_weights,
    whole_weight_shape,
)
from gcnsl.sharding.process_group import rank

from .ranks import in_group

N, BLOCKS = 5, 2


class Model(nn.Module):
    """A model with weights for every node, in two blocks, and one weight for all."""

    def __init__(self) -> None:
        super().__init__()
        self.of_nodes, self.of_all = nn.Linear(BLOCKS * N, 3, bias=False), nn.Linear(1, 1, bias=False)
        with torch.no_grad():
            self.of_nodes.weight.copy_(torch.arange(3.0 * BLOCKS * N).view(3, -1))

    @property
    def node_layers(self) -> list[nn.Linear]:
        return [self.of_nodes]


def split_and_join() -> list[object]:
    model = Model()
    before = model.of_nodes.weight.tolist()
    with divided(N):
        split_weights(model)
        own, shape = model.of_nodes.weight.tolist(), whole_weight_shape(model.of_nodes.weight)
        names = split_names(model)
        for weight in model.parameters():
            weight.grad = torch.full_like(weight, rank() + 1.0)
        add_up_gradients(model)
        gradients = [float(weight.grad.max()) for weight in (model.of_nodes.weight, model.of_all.weight)]
        again = own_columns(all_columns(model.of_nodes.weight)).tolist()
        join_weights(model)
    assert not is_split(model.of_nodes.weight)
    return [own, again, shape, names, gradients, model.of_nodes.weight.tolist() == before, model.of_nodes.in_features]


@pytest.mark.parametrize("size", [1, 2])
def test_each_process_has_the_weights_of_its_nodes(size: int) -> None:
    whole = Model().of_nodes.weight.detach().view(3, BLOCKS, N)
    for own, answer in enumerate(in_group(size, split_and_join)):
        expected = whole[:, :, : 5 if size == 1 else 3] if own == 0 else whole[:, :, 3:]
        assert answer[:2] == [expected.flatten(1).tolist()] * 2
        assert answer[2:4] == [[3, BLOCKS * N], {"of_nodes.weight"}]
        assert answer[4] == [own + 1, sum(range(1, size + 1))], "gradients of split weights are complete already"
        assert answer[5:] == [True, BLOCKS * N]


def test_in_a_single_process_gradients_stay() -> None:
    model = Model()
    model.of_all.weight.grad = torch.ones(1, 1)
    add_up_gradients(model)
    assert model.of_all.weight.grad.item() == 1
