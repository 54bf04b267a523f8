import itertools
import warnings

import pytest
import torch

from gcnsl.errors import TrainingDiverged
from gcnsl.training import TrainingSettings, train
from gcnsl.training import history as history_module
from gcnsl.training.settings import SETTLED_EPOCHS

from .cases import DATA, MASKS, TEST, TRAIN, VAL, Lookup, fit, follow, net


@pytest.mark.parametrize(
    ("script", "epochs", "best", "stopped"),
    [([1, 2, 3, 2, 2, 2, 9], 50, 3, "patience"), ([1, 2, 3, 4], 4, 4, "epochs")],
)
def test_it_stops_in_time_and_restores_the_best_weights(script, epochs, best, stopped) -> None:
    model, history, weights = follow(script, patience=3, epochs=epochs)
    assert (len(history), history.best_epoch, history.stopped) == (min(epochs, best + 3), best, stopped)
    assert model.weight.item() == weights[best - 1]
    assert len(set(weights)) == len(history)
    assert not model.training


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
        assert (epoch.metric, epoch.score) == ("accuracy", epoch.accuracy["val"])
        assert epoch.number == number
        assert epoch.improved == (epoch.val_loss == min(history["val_loss"][:number]))
    assert seen[-1].remaining == 0
    assert seen[-1].seconds == history.seconds > 0


def test_a_run_that_has_settled_ends() -> None:
    script = [1, 4, *(4 + number / 1000 for number in range(1, 100))]
    settled = follow(script, patience=90, epochs=100, tolerance=0.1)[1]
    assert (len(settled), settled.best_epoch, settled.stopped) == (2 + SETTLED_EPOCHS, 2 + SETTLED_EPOCHS, "patience")
    assert len(follow(script, patience=90, epochs=100)[1]) == 100  # the graph is small


def test_some_epochs_are_not_evaluated_and_have_the_values_of_the_last_that_was() -> None:
    model, history, weights = follow([1, 3, 2, 4], patience=8, epochs=8, evaluate_every=3)
    assert model.passes == 4  # epochs 1, 3, 6 and 8, the last one
    every_epoch = follow([1] * 8, patience=8, epochs=8)[1]
    assert history["train_loss"] == every_epoch["train_loss"]
    changes = [number for number in range(2, 9) if history["val_loss"][number - 1] != history["val_loss"][number - 2]]
    assert changes == [3, 6, 8]
    assert (len(history), history.best_epoch, model.weight.item()) == (8, 8, weights[7])


def test_the_last_epoch_that_fits_into_the_time_is_evaluated(monkeypatch) -> None:
    now = [0.0]
    monkeypatch.setattr(history_module.time, "perf_counter", lambda: now[0])
    seen = []

    def on_epoch(epoch) -> None:
        now[0] += 10
        seen.append(epoch)

    settings = TrainingSettings(evaluate_every=50)
    history = train(Lookup([1, 2, 9]), [], DATA.y, settings=settings, seed=0, minutes=1, on_epoch=on_epoch, **MASKS)
    assert (len(history), history.best_epoch, history.stopped) == (6, 6, "minutes")
    assert [epoch.improved for epoch in seen] == [True, False, False, False, False, True]


@pytest.mark.parametrize("poison", [float("nan"), float("inf")])
def test_a_diverging_run_ends_with_a_clear_message(poison) -> None:
    advice = r"val_loss is nan in epoch 3 with lr 0\.5; use a smaller lr, such as 0\.05"
    with pytest.raises(TrainingDiverged, match=advice):
        follow([1, 2, poison], lr=0.5)
    with pytest.raises(TrainingDiverged, match="train_loss is nan in epoch 1"):
        train(net(), [DATA.x * poison], DATA.y, settings=TrainingSettings(), seed=0, **MASKS)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize(("monitor", "waits_per_epoch"), [("loss", 1), ("roc-auc", 2)])
def test_on_a_gpu_everything_is_moved_and_waited_for_once_an_epoch(monitor, waits_per_epoch) -> None:
    waits = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.set_warn_always(True)
        try:
            torch.cuda.set_sync_debug_mode("warn")
            for epochs in (10, 30):
                caught.clear()
                fit(net().cuda(), settings=TrainingSettings(epochs=epochs, monitor=monitor))
                waits.append(sum("called a synchronizing" in str(warning.message) for warning in caught))
        finally:
            torch.cuda.set_sync_debug_mode("default")
            torch.set_warn_always(False)
    assert 0 < waits[1] - waits[0] <= 20 * waits_per_epoch


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_on_a_gpu_a_seed_fixes_dropout_and_the_callers_generator_is_left_alone() -> None:
    torch.cuda.manual_seed(5)
    before = torch.cuda.get_rng_state()
    losses = [fit(net().cuda())["train_loss"] for _ in range(2)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)
    assert torch.cuda.get_rng_state().equal(before)


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
