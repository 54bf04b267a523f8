"""One run: what it is about is done, and what is to be known of it is measured."""

import math
import os
import platform
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from typing import Any

import torch
from threadpoolctl import threadpool_limits
from torch import nn
from torch_geometric.data import Data

import gcnsl
from gcnsl.experiments.learned_graph import learned_agreement
from gcnsl.experiments.results import RunResult
from gcnsl.experiments.spec import RunSpec
from gcnsl.graph import edge_homophily
from gcnsl.methods import Method, find_method, run_split, split_masks
from gcnsl.nn import Input
from gcnsl.spectral import SpectralFeatures
from gcnsl.training import Epoch, History, choose_device, seeded
from gcnsl.training.checkpoint import digest

CURVE_STEP = 2
"""Of a curve every second epoch is kept: it looks the same, and is half the size."""
_WARM_UP_ROWS = 64


def method_of(spec: RunSpec) -> Method:
    """The method with the run's options."""
    return find_method(spec.method).with_options(**dict(spec.options))


def train_run(
    spec: RunSpec,
    data: Data,
    inputs: tuple[Input, ...],
    *,
    device: str,
    on_epoch: Callable[[Epoch], None] | None = None,
) -> RunResult:
    """Train on one split, test, and look at the learned graph.

    Args:
        spec: The run.
        data: Its graph, with masks.
        inputs: What its method prepared from the graph, on the device.
        device: ``"cpu"``, ``"cuda"``, ...
        on_epoch: Called after each epoch.
    """
    method, began = method_of(spec), time.perf_counter()
    outcome = run_split(
        method,
        data,
        inputs,
        run=spec.run,
        seed=spec.train_seed,
        device=device,
        watch_test=spec.curves,
        on_epoch=on_epoch,
    )
    seconds = time.perf_counter() - began
    history = outcome.history
    metrics = {**outcome.accuracy, "epochs": len(history), "best_epoch": history.best_epoch}
    return RunResult(
        spec=spec,
        status="ok",
        metrics=_rounded(metrics | _homophily(spec, method, data, inputs, outcome.model)),
        seconds=round(seconds, 3),
        split_hash=digest(split_masks(data, spec.run))[:16],
        history=_curves(history) if spec.curves else {},
        **provenance(device),
    )


def _homophily(
    spec: RunSpec, method: Method, data: Data, inputs: tuple[Input, ...], trained: nn.Module
) -> dict[str, Any]:
    """Of the original graph, and of the learned one before and after training; empty if none is learned."""
    learned = learned_agreement(trained, inputs, data.y)
    if learned is None:
        return {}
    with seeded(spec.train_seed):  # as run_split does it: the same weights as before training
        untrained = method.config.build(data).to(next(trained.parameters()).device).eval()
    initial = learned_agreement(untrained, inputs, data.y)
    original = edge_homophily(data.edge_index, data.y)
    return {
        "homophily": learned.homophily,
        "degree": learned.degree,
        "homophily_initial": None if initial is None else initial.homophily,
        "homophily_original": None if math.isnan(original) else original,
    }


def time_features(spec: RunSpec, data: Data, *, device: str) -> RunResult:
    """Make the spectral features of a graph and take the time.

    One thread does it: how much several gain depends on how they wait for each other, not on the method.
    """
    on = choose_device(device)
    x = data.x.to(on)
    options: dict[str, Any] = {"method": spec.method, "random_state": spec.train_seed}
    warm_up = torch.ones(_WARM_UP_ROWS, 2, device=on)
    with one_thread():
        SpectralFeatures(**options, n_components=2, n_anchors=2).fit_transform(warm_up)
        _finish(on)
        began = time.perf_counter()
        SpectralFeatures(**options, **dict(spec.options)).fit_transform(x)
        _finish(on)
        seconds = round(time.perf_counter() - began, 6)
    return RunResult(spec=spec, status="ok", metrics={"seconds": seconds}, seconds=seconds, **provenance(device))


def failed_run(spec: RunSpec, error: BaseException | str, *, device: str) -> RunResult:
    """The record of a run that went wrong."""
    text = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
    return RunResult(spec=spec, status="failed", error=" ".join(text.split())[:500], **provenance(device))


def provenance(device: str) -> dict[str, Any]:
    """Where, with what and when."""
    on = choose_device(device)
    name = (
        torch.cuda.get_device_name(on) if on.type == "cuda" else f"CPU ({platform.machine()}, {os.cpu_count()} cores)"
    )
    finished = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
    return {"device": name, "version": gcnsl.__version__, "finished": finished}


@contextmanager
def one_thread() -> Iterator[None]:
    """Let one thread do all work: torch has a linear algebra of its own that the other limit does not reach."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        torch.set_num_threads(threads)


def _finish(device: torch.device) -> None:
    """Wait for what a GPU still has to do."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _curves(history: History) -> dict[str, list[float]]:
    """Accuracy in every :data:`CURVE_STEP`-th epoch, from the first."""
    return {
        name: [round(value, 4) for value in history[f"{name}_accuracy"][::CURVE_STEP]]
        for name in ("train", "val", "test")
    }


def _rounded(metrics: dict[str, Any]) -> dict[str, Any]:
    return {name: round(value, 6) if isinstance(value, float) else value for name, value in metrics.items()}
