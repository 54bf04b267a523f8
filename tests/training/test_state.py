import itertools

import pytest
import torch
from torch import nn

from gcnsl.training import TrainingSettings
from gcnsl.training.state import RunState

from .cases import DATA, TRAIN, fit, follow, net, same_weights


def test_the_first_step_is_adams() -> None:
    model = nn.Linear(12, 3)
    by_hand = nn.Linear(12, 3)
    by_hand.load_state_dict(model.state_dict())
    optimizer = torch.optim.Adam(by_hand.parameters(), lr=0.1, weight_decay=0.3)
    nn.functional.cross_entropy(by_hand(DATA.x[TRAIN]), DATA.y[TRAIN]).backward()
    optimizer.step()
    fit(model, settings=TrainingSettings(epochs=1, lr=0.1, weight_decay=0.3))
    assert torch.allclose(model.weight, by_hand.weight, atol=1e-6)
    assert torch.allclose(model.bias, by_hand.bias, atol=1e-6)


def test_a_model_may_say_what_decays() -> None:
    grouped, plain = net(), net()
    plain.parameter_groups = None
    decaying = TrainingSettings(epochs=1, weight_decay=10.0, optimizer="sgd")
    for model in (grouped, plain):
        fit(model, settings=decaying)
    free = net()
    fit(free, settings=TrainingSettings(epochs=1, weight_decay=0.0, optimizer="sgd"))
    assert grouped.norm.weight.equal(free.norm.weight)
    assert not plain.norm.weight.equal(free.norm.weight)
    assert not grouped.first.weight.equal(free.first.weight)


def test_the_learning_rate_falls_on_a_plateau() -> None:
    script = [1.0] * 9
    *_, steady = follow(script, optimizer="sgd", weight_decay=0.0, epochs=9)
    *_, falling = follow(script, optimizer="sgd", weight_decay=0.0, epochs=9, plateau_factor=0.1, plateau_patience=2)
    steps = [b - a for a, b in itertools.pairwise(falling)]
    assert falling[:4] == steady[:4], "epoch 1 is the best, 2 and 3 are forgiven, after 4 the rate falls"
    assert steps[3] == pytest.approx(0.1 * steps[2], rel=0.05)
    assert steps[6] == pytest.approx(0.01 * steps[2], rel=0.05)


def test_a_state_comes_back_from_its_parts() -> None:
    settings = TrainingSettings(lr=0.5, plateau_factor=0.5)
    state, other = RunState(net(), settings), RunState(net(), settings)
    state.model(DATA.x).sum().backward()
    state.optimizer.step()
    state.optimizer.param_groups[0]["lr"] = 0.25
    state.keep_best()
    other.restore({name: value.clone() for name, value in state.tensors().items()}, state.plain())
    assert same_weights(state.model, other.model)
    assert all(value.equal(other.best[name]) for name, value in state.best.items())
    assert other.plain() == state.plain()
    assert all(value.equal(other.tensors()[name]) for name, value in state.tensors().items())
