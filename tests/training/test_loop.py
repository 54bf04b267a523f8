"""The loop, and what it is made of: objective, history."""

import itertools
import json
import warnings

import pytest
import torch
from torch import nn
from training_cases import DATA, MASKS, TEST, TRAIN, VAL, Net, fit, gcn_sl, net, same_weights

from gcnsl import InputError
from gcnsl.errors import TrainingDiverged
from gcnsl.training import History, TrainingSettings, predict_logits, seeded, train


class Lookup(nn.Module):
    """Logits by hand: its only weight moves from epoch to epoch, so that each epoch's weights can be told apart."""

    def __init__(self, script) -> None:
        super().__init__()
        self.script, self.passes = script, 0
        self.weight = nn.Parameter(torch.zeros(1))

    def forward(self):
        self.passes += not self.training
        if self.training:
            return self.weight * torch.tensor([1.0, 0, 0]).expand(60, 3)
        return self.script[self.passes - 1] * nn.functional.one_hot(DATA.y, 3).float()


def follow(script, **settings) -> tuple[Lookup, History, list[float]]:
    """Train against the given certainties of the right class, and note the weight after each epoch."""
    model, weights = Lookup(script), []
    history = train(
        model,
        [],
        DATA.y,
        settings=TrainingSettings(**settings),
        seed=0,
        on_epoch=lambda _: weights.append(model.weight.item()),
        **MASKS,
    )
    return model, history, weights


def test_it_learns_what_the_model_can_learn() -> None:
    model, history = gcn_sl(None)
    assert history["train_loss"][-1] < 0.7 * history["train_loss"][0]
    assert history.best["val_accuracy"] > 0.6
    assert not model.training


def test_it_stops_after_patience_and_restores_the_best_weights() -> None:
    model, history, weights = follow([1, 2, 3, 2, 2, 2, 9], patience=3, epochs=50)
    assert len(history) == 6
    assert (history.best_epoch, history.stopped) == (3, "patience")
    assert model.weight.item() == weights[2]
    assert len(set(weights)) == 6


def test_it_stops_after_the_last_epoch() -> None:
    model, history, weights = follow([1, 2, 3, 4], patience=3, epochs=4)
    assert (len(history), history.best_epoch, history.stopped) == (4, 4, "epochs")
    assert model.weight.item() == weights[3]


def test_an_equal_loss_is_no_improvement() -> None:
    history = History()
    for loss in (1.0, 1.0, 0.9):
        history.append({"val_loss": loss, "val_accuracy": 0.5}, "loss")
    assert history.best_epoch == 3
    history.append({"val_loss": 0.9, "val_accuracy": 0.9}, "loss")
    assert history.best_epoch == 3


def test_accuracy_decides_if_asked_and_loss_breaks_ties() -> None:
    history = History()
    best = []
    for accuracy, loss in ((0.5, 1.0), (0.6, 2.0), (0.6, 1.5), (0.5, 0.1), (0.6, 1.5)):
        history.append({"val_loss": loss, "val_accuracy": accuracy}, "accuracy")
        best.append(history.best_epoch)
    assert best == [1, 2, 3, 3, 3]


def test_the_values_are_those_of_the_formulas() -> None:
    model = net()
    states, seen = [], []

    def note(epoch) -> None:
        states.append({name: value.clone() for name, value in model.state_dict().items()})
        seen.append(epoch)

    history = fit(model, watch={"test": TEST}, on_epoch=note)
    assert set(history.values) == {"train_loss", "val_loss", "train_accuracy", "val_accuracy", "test_accuracy"}
    for number, (state, epoch) in enumerate(zip(states, seen, strict=True), start=1):
        model.load_state_dict(state)
        logits = model.eval()(DATA.x).detach()
        right = logits.argmax(1) == DATA.y
        for name, mask in (("train", TRAIN), ("val", VAL), ("test", TEST)):
            assert epoch.accuracy[name] == history[f"{name}_accuracy"][number - 1] == int(right[mask].sum()) / 20
        loss = -torch.log_softmax(logits, 1)[VAL, DATA.y[VAL]].mean()
        assert epoch.val_loss == history["val_loss"][number - 1] == pytest.approx(float(loss), rel=1e-5)
        assert epoch.train_loss == history["train_loss"][number - 1]
        assert epoch.number == number
        assert epoch.improved == (epoch.val_loss == min(history["val_loss"][:number]))
    assert seen[-1].remaining == 0
    assert seen[-1].seconds == history.seconds > 0


def test_remaining_counts_down_from_the_best_epoch() -> None:
    seen = []
    script = [1, 2, 1, 1, 1]
    train(Lookup(script), [], DATA.y, settings=TrainingSettings(patience=3), seed=0, on_epoch=seen.append, **MASKS)
    assert [epoch.remaining for epoch in seen] == [3, 3, 2, 1, 0]


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


@pytest.mark.parametrize("build", [net, lambda: gcn_sl(None)[0]])
def test_a_seed_fixes_every_bit_and_the_callers_generator_is_left_alone(build) -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    first = build()
    assert torch.get_rng_state().equal(before)
    torch.manual_seed(6)
    assert same_weights(first, build())


def test_seeds_differ_in_what_dropout_drops() -> None:
    one, same, other = net(), net(), net()
    fit(one, seed=1)
    fit(same, seed=1)
    fit(other, seed=2)
    assert same_weights(one, same)
    assert not same_weights(one, other)


def test_seeded_draws() -> None:
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(1)
    before = torch.get_rng_state()
    with seeded(0):
        assert torch.rand(3).equal(expected)
    assert torch.get_rng_state().equal(before)


@pytest.mark.parametrize("poison", [float("nan"), float("inf")])
def test_a_diverging_run_ends_with_a_clear_message(poison) -> None:
    with pytest.raises(TrainingDiverged, match=r"val_loss is nan in epoch 3 with lr 0\.5; take a smaller lr \(0\.05"):
        follow([1, 2, poison], lr=0.5)


def test_divergence_in_the_step_is_noticed() -> None:
    with pytest.raises(TrainingDiverged, match="train_loss is nan in epoch 1"):
        train(net(), [DATA.x * float("nan")], DATA.y, settings=TrainingSettings(), seed=0, **MASKS)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"train_mask": torch.zeros(60, dtype=torch.bool)}, "train_mask selects no node"),
        ({"val_mask": torch.ones(60)}, r"val_mask has shape \(60,\) and dtype torch.float32: give a boolean"),
        ({"val_mask": torch.ones(60, 10, dtype=torch.bool)}, r"shape \(60, 10\) .* take one column, mask\[:, run\]"),
        ({"watch": {"test": torch.zeros(60, dtype=torch.bool)}}, "test_mask selects no node"),
        ({"watch": {"val": TEST}}, "watch has a mask named 'val', which training has itself"),
    ],
)
def test_bad_masks_are_refused(options, message) -> None:
    with pytest.raises(InputError, match=message):
        fit(net(), **options)


def test_an_unlabelled_node_in_a_mask_is_refused_and_elsewhere_ignored() -> None:
    y = DATA.y.clone()
    y[TEST] = -1
    plain, without = net(), net()
    fit(plain)
    train(without, [DATA.x], y, settings=TrainingSettings(epochs=20), seed=0, **MASKS)
    assert same_weights(plain, without)
    y[4] = -1
    with pytest.raises(InputError, match=r"val_mask\[4\] selects a node without a label"):
        train(net(), [DATA.x], y, settings=TrainingSettings(), seed=0, **MASKS)


def test_a_model_for_another_graph_is_refused() -> None:
    with pytest.raises(InputError, match=r"logits of shape \(60, 2\), but y has 60 nodes and labels up to 2"):
        fit(nn.Linear(12, 2))
    with pytest.raises(InputError, match=r"logits of shape \(50, 3\)"):
        train(nn.Linear(12, 3), [DATA.x[:50]], DATA.y, settings=TrainingSettings(), seed=0, **MASKS)


def test_predict_logits_neither_drops_nor_changes_the_mode() -> None:
    model = Net()
    logits = predict_logits(model, [DATA.x])
    assert model.training
    assert logits.equal(model.eval()(DATA.x))
    assert not logits.requires_grad


def test_a_history_survives_json() -> None:
    history = fit(net(), watch={"test": TEST})
    assert History.from_dict(json.loads(json.dumps(history.to_dict()))) == history


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_on_a_gpu_everything_is_moved_and_waited_for_once_an_epoch() -> None:
    waits = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.set_warn_always(True)
        try:
            torch.cuda.set_sync_debug_mode("warn")
            for epochs in (10, 30):
                caught.clear()
                fit(net().cuda(), settings=TrainingSettings(epochs=epochs))
                waits.append(sum("called a synchronizing" in str(warning.message) for warning in caught))
        finally:
            torch.cuda.set_sync_debug_mode("default")
            torch.set_warn_always(False)
    assert 0 < waits[1] - waits[0] <= 20


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_on_a_gpu_a_seed_fixes_dropout_and_the_callers_generator_is_left_alone() -> None:
    torch.cuda.manual_seed(5)
    before = torch.cuda.get_rng_state()
    losses = [fit(net().cuda())["train_loss"] for _ in range(2)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)
    assert torch.cuda.get_rng_state().equal(before)
