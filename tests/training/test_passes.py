import torch

from gcnsl.training import TrainingSettings, predict_logits
from gcnsl.training.objective import Objective
from gcnsl.training.passes import differentiate
from gcnsl.training.state import RunState

from .cases import DATA, MASKS, net


def test_predict_logits_neither_drops_nor_changes_the_mode() -> None:
    model = net().train()
    logits = predict_logits(model, [DATA.x])
    assert model.training
    assert not logits.requires_grad
    assert logits.equal(model.eval()(DATA.x).detach())


def test_gradients_are_those_of_the_cross_entropy_and_of_what_the_model_adds() -> None:
    model, settings = net().eval(), TrainingSettings()
    model.train = lambda *_: model  # no dropout
    model.extra_loss = lambda x, *, y, nodes: 3 * sum(weight.sum() for weight in model.parameters())
    objective = Objective(DATA.y, **MASKS, watch={}, settings=settings, class_names=None, device=torch.device("cpu"))
    loss = differentiate(RunState(model, settings), [DATA.x], objective)
    train = MASKS["train_mask"]
    expected = torch.nn.functional.cross_entropy(model(DATA.x)[train], DATA.y[train])
    assert not loss.requires_grad
    assert float(loss) == float(expected.detach())
    for weight, alone in zip(model.parameters(), torch.autograd.grad(expected, [*model.parameters()]), strict=True):
        torch.testing.assert_close(weight.grad, alone + 3)
