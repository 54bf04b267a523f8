import pytest
import torch
from torch_geometric.nn import LabelPropagation as Reference
from torch_geometric.nn.conv.gcn_conv import gcn_norm

from gcnsl.errors import InputError
from gcnsl.graph import from_arrays
from gcnsl.plain.class_votes import ClassVotes
from gcnsl.plain.plain_config import LabelPropagationConfig

from .cases import CLASSES, N, fit, graph, setup, trained_on


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("steps", [1, 2, 7])
@pytest.mark.parametrize("alpha", [0.3, 1.0])
def test_it_is_that_of_torch_geometric(weighted, steps, alpha) -> None:
    data = graph(weighted=weighted)
    model, inputs = setup(LabelPropagationConfig(alpha=alpha), data)
    y = trained_on(data.y)
    fit(model, inputs, y, stages=steps)
    edges = gcn_norm(data.edge_index, data.get("edge_weight"), N, add_self_loops=False)
    scores = Reference(steps, alpha)(data.y, edges[0], y >= 0, edges[1])
    votes = ClassVotes(N, CLASSES)
    votes.remember(y, torch.ones(N))
    torch.testing.assert_close(model(*inputs), votes.log_probabilities(scores))


def test_a_number_of_steps_that_no_training_takes_is_refused() -> None:
    model, _ = setup(LabelPropagationConfig(), graph())
    state = model.state_dict()
    model.load_state_dict(state | {"steps": torch.tensor(3)})
    with pytest.raises(InputError, match=r"steps.* must be from 0 to 10000"):
        model.load_state_dict(state | {"steps": torch.tensor(2**62)})


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


def test_weights_of_classes_are_relative() -> None:
    data = graph()
    model, inputs = setup(LabelPropagationConfig(), data)
    y = trained_on(data.y)
    fit(model, inputs, y, weight=torch.where(y == 1, 50.0, 10.0))
    assert model.labels.max() == 1
    assert model.labels[y == 0].sum(dim=1).unique().tolist() == pytest.approx([0.2])


def test_the_largest_weight_of_a_labelled_node_becomes_one() -> None:
    data = graph()
    model, inputs = setup(LabelPropagationConfig(), data)
    y = trained_on(data.y)
    fit(model, inputs, y, weight=torch.where(y == 1, 0.5, torch.where(y < 0, 1.0, 0.1)))
    assert model.labels.max() == 1
