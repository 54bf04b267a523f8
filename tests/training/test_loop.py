import gc
import warnings
import weakref

import pytest
import torch
from torch import nn

from gcnsl.errors import TrainingDiverged
from gcnsl.training import History, TrainingSettings, loop, time_budget, train
from gcnsl.training.settings import SETTLED_EPOCHS

from .cases import DATA, MASKS, TEST, TRAIN, VAL, Lookup, fit, follow, gcn_sl, net, same_weights


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


def test_remaining_counts_down_from_the_best_epoch() -> None:
    seen = []
    script = [1, 2, 1, 1, 1]
    train(Lookup(script), [], DATA.y, settings=TrainingSettings(patience=3), seed=0, on_epoch=seen.append, **MASKS)
    assert [epoch.remaining for epoch in seen] == [3, 3, 2, 1, 0]


def test_a_run_that_has_settled_ends() -> None:
    script = [1, 4, *(4 + number / 1000 for number in range(1, 100))]
    settled = follow(script, patience=90, epochs=100, tolerance=0.1)[1]
    assert (len(settled), settled.best_epoch, settled.stopped) == (2 + SETTLED_EPOCHS, 2 + SETTLED_EPOCHS, "patience")
    assert len(follow(script, patience=90, epochs=100)[1]) == 100  # the graph is small


def test_the_monitored_metric_can_settle_too() -> None:
    settings = TrainingSettings(patience=90, tolerance=0.1, monitor="accuracy")
    values = {"val_loss": 1.0, "val_accuracy": 0.5}
    history = History()
    for number in range(20):
        history.append(values | {"val_loss": 1 - number / 100}, settings.monitor)
    assert (history.best_epoch, history.remaining(settings)) == (20, 1 + SETTLED_EPOCHS - 20)
    history.append(values | {"val_accuracy": 0.7}, settings.monitor)
    assert history.remaining(settings) == SETTLED_EPOCHS


def test_some_epochs_are_not_evaluated_and_have_the_values_of_the_last_that_was() -> None:
    model, history, weights = follow([1, 3, 2, 4], patience=8, epochs=8, evaluate_every=3)
    assert model.passes == 4  # epochs 1, 3, 6 and 8, the last one
    every_epoch = follow([1] * 8, patience=8, epochs=8)[1]
    assert history["train_loss"] == every_epoch["train_loss"]
    changes = [number for number in range(2, 9) if history["val_loss"][number - 1] != history["val_loss"][number - 2]]
    assert changes == [3, 6, 8]
    assert (len(history), history.best_epoch, model.weight.item()) == (8, 8, weights[7])


def test_patience_ends_with_an_epoch_that_is_evaluated() -> None:
    model, history, weights = follow([1, 3, 2, 2, 9], patience=4, epochs=80, evaluate_every=3)
    assert (len(history), history.best_epoch, history.stopped) == (9, 3, "patience")  # not 7
    assert (model.passes, model.weight.item()) == (4, weights[2])
    seen = []
    settings = TrainingSettings(patience=1, evaluate_every=5)
    train(Lookup([1, 1]), [], DATA.y, settings=settings, seed=0, on_epoch=seen.append, **MASKS)
    assert [epoch.remaining for epoch in seen] == [4, 3, 2, 1, 0]


def test_the_last_epoch_that_fits_into_the_time_is_evaluated(monkeypatch) -> None:
    now = [0.0]
    monkeypatch.setattr(time_budget.time, "perf_counter", lambda: now[0])
    seen = []

    def on_epoch(epoch) -> None:
        now[0] += 10
        seen.append(epoch)

    settings = TrainingSettings(evaluate_every=50)
    history = train(Lookup([1, 2, 9]), [], DATA.y, settings=settings, seed=0, minutes=1, on_epoch=on_epoch, **MASKS)
    assert (len(history), history.best_epoch, history.stopped) == (6, 6, "minutes")
    assert [epoch.improved for epoch in seen] == [True, False, False, False, False, True]


@pytest.mark.parametrize(("given", "nodes", "used"), [(None, 32_768, 1), (None, 32_769, 5), (1, 10**6, 1), (7, 9, 7)])
def test_large_graphs_are_evaluated_less_often_unless_it_is_said_how_often(given, nodes, used) -> None:
    assert TrainingSettings(evaluate_every=given).for_nodes(nodes).evaluate_every == used


@pytest.mark.parametrize(
    ("given", "nodes", "used"), [(None, 32_768, 0), (None, 32_769, 0.01), (0.0, 10**6, 0), (0.2, 9, 0.2)]
)
def test_only_large_graphs_have_a_tolerance_unless_it_is_given(given, nodes, used) -> None:
    assert TrainingSettings(tolerance=given).for_nodes(nodes).tolerance == used


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


@pytest.mark.parametrize("poison", [float("nan"), float("inf")])
def test_a_diverging_run_ends_with_a_clear_message(poison) -> None:
    with pytest.raises(
        TrainingDiverged, match=r"val_loss is nan in epoch 3 with lr 0\.5; use a smaller lr, such as 0\.05"
    ):
        follow([1, 2, poison], lr=0.5)


def test_divergence_in_the_step_is_noticed() -> None:
    with pytest.raises(TrainingDiverged, match="train_loss is nan in epoch 1"):
        train(net(), [DATA.x * float("nan")], DATA.y, settings=TrainingSettings(), seed=0, **MASKS)


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


def test_a_model_may_add_to_its_loss_but_not_to_the_history() -> None:
    class Heavy(nn.Linear):
        def extra_loss(self, x, *, y, nodes):
            assert nodes.tolist() == MASKS["train_mask"].nonzero().flatten().tolist()
            assert len(y) == len(x)
            return 1e3 * self.weight.square().sum()

    plain, heavy = nn.Linear(12, 3), Heavy(12, 3)
    heavy.load_state_dict(plain.state_dict())
    first, second = (fit(model, settings=TrainingSettings(epochs=5, weight_decay=0)) for model in (plain, heavy))
    assert first["train_loss"][0] == second["train_loss"][0]
    assert second["train_loss"][-1] != first["train_loss"][-1]
    assert heavy.weight.norm() < plain.weight.norm()


def test_garbage_of_the_first_epoch_is_collected_in_large_graphs(monkeypatch) -> None:
    monkeypatch.setattr(loop, "LARGE_GRAPH", len(DATA.y) - 1)
    model = net()
    left_behind: list[weakref.ref[torch.Tensor]] = []

    def leave(_module, _inputs, logits) -> None:
        cycle = [logits.detach()]
        cycle.append(cycle)
        left_behind.append(weakref.ref(cycle[0]))

    model.register_forward_hook(leave)
    alive: list[bool] = []
    gc.disable()
    try:
        fit(model, on_epoch=lambda _: alive.append(left_behind[0]() is not None))
    finally:
        gc.enable()
    assert not alive[0]
