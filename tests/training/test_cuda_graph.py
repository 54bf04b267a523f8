from types import SimpleNamespace

import pytest
import torch

from gcnsl import synthetic
from gcnsl.datasets import with_random_split
from gcnsl.methods import METHODS, find_method, prepare
from gcnsl.methods.fitted import fit
from gcnsl.training import TrainingSettings, cuda_graph, loop
from gcnsl.training.cuda_graph import RecordedPasses
from gcnsl.training.loop import Passes, passes_of
from gcnsl.training.state import RunState

from .cases import fit as fit_network
from .cases import net

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
NETWORKS = [name for name, method in METHODS.items() if isinstance(method.training, TrainingSettings)]


def test_small_graphs_are_replayed_on_a_gpu_if_the_model_allows_it(monkeypatch) -> None:
    monkeypatch.setattr(cuda_graph, "_stream", lambda device: None)

    def kind(device="cuda", nodes=loop.MOST_NODES, record=True, settings=TrainingSettings(evaluate_every=1)):  # noqa: B008
        state, objective = RunState(net(), settings), SimpleNamespace(y=torch.empty(nodes))
        state.device = torch.device(device)
        return type(passes_of(state, [], objective, settings, record=record))

    assert kind() is RecordedPasses
    assert kind(device="cpu") is kind(nodes=loop.MOST_NODES + 1) is kind(record=False) is Passes
    assert kind(settings=TrainingSettings(evaluate_every=2)) is Passes


UNUSUAL = [
    ("gcn-sl-plus", {"hidden_channels": 128}),  # wide rows are averaged by plain products
    ("gcn-sl-plus", {"direction": "both", "features_heads": 1, "link_dropout": 0.5, "normalize_branches": True}),
    ("gcn-sl-plus", {"mean_degree": None, "contrast": 0.0}),
    ("gcn-sl-av", {"hidden_channels": 128}),
    ("gcn", {"norm": "batch", "num_layers": 4, "residual": True}),
    ("mlp", {"monitor": "roc-auc"}),
]


@needs_gpu
@pytest.mark.parametrize(("name", "options"), [*((name, {}) for name in NETWORKS), *UNUSUAL])
def test_every_network_learns_the_same_whether_recorded_or_not(name, options, monkeypatch) -> None:
    """Kernels may differ, and so rounding; over a few epochs this stays small."""
    graph = with_random_split(synthetic(n=300, h=0.3, classes=3, degree=6, features=40, seed=1), seed=0)
    method = find_method(name).with_options(epochs=8, patience=8, **options)
    ready = prepare(method, graph, seed=0, device=torch.device("cuda"))
    masks = {f"{part}_mask": graph[f"{part}_mask"][:, 0] for part in ("train", "val")}
    recorded = fit(ready, **masks, seed=3)
    monkeypatch.setattr(loop, "MOST_NODES", 0)
    one_by_one = fit(ready, **masks, seed=3)
    for value in ("train_loss", "val_loss"):
        assert recorded.history[value] == pytest.approx(one_by_one.history[value], rel=2e-3, abs=2e-3)


@needs_gpu
def test_dropout_draws_new_numbers_in_every_repetition() -> None:
    settings = TrainingSettings(epochs=12, lr=1e-9, weight_decay=0)
    history = fit_network(net().cuda(), settings=settings, record=True)
    assert len(set(history["train_loss"])) == 12


@needs_gpu
def test_a_new_learning_rate_is_recorded_again() -> None:
    settings = TrainingSettings(epochs=30, plateau_factor=0.5, plateau_patience=1, lr=0.3)
    histories = [fit_network(net().cuda(), settings=settings, record=record) for record in (True, False)]
    assert histories[0]["val_loss"] == pytest.approx(histories[1]["val_loss"], rel=1e-3, abs=1e-3)
