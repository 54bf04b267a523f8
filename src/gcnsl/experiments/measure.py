"""Carry out one run and measure what the tables need."""

import math
import os
import platform
import time
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from gcnsl.errors import InputError
from gcnsl.evaluation.agreement import learned_agreement
from gcnsl.evaluation.hyperparameter_search import Search, search
from gcnsl.evaluation.outcome import Outcome, run_split
from gcnsl.experiments.beyond import fixed_options, searched_method
from gcnsl.experiments.result_store import RunResult
from gcnsl.experiments.spec import RunSpec
from gcnsl.files import digest
from gcnsl.graph import edge_homophily, split_masks
from gcnsl.methods import Prepared, initial_model
from gcnsl.spectral import SpectralFeatures
from gcnsl.training import Epoch
from gcnsl.training.environment import one_thread
from gcnsl.version import __version__

CURVE_STEP = 2
"""Curves keep every second epoch: they look the same and take half the space."""
_WARM_UP_ROWS = 64


def train_run(spec: RunSpec, prepared: Prepared, *, on_epoch: Callable[[Epoch], None] | None = None) -> RunResult:
    """Train on one split, test, and measure the learned graph."""
    began = time.perf_counter()
    outcome = run_split(prepared, run=spec.run, seed=spec.train_seed, watch_test=spec.curves, on_epoch=on_epoch)
    seconds = time.perf_counter() - began
    history, masks = outcome.fitted.history, split_masks(prepared.graph, spec.run)
    curves = {part: history[f"{part}_accuracy"][::CURVE_STEP] for part in ("train", "val", "test") if spec.curves}
    metrics = {
        **outcome.accuracy,
        **_test_score(spec, outcome),
        **{f"{part}_nodes": int(masks[part].sum()) for part in ("train", "test")},
        "epochs": len(history),
        "best_epoch": history.best_epoch,
        **_homophily(spec, outcome),
    }
    return RunResult(
        spec=spec,
        status="ok",
        metrics={name: round(value, 6) if isinstance(value, float) else value for name, value in metrics.items()},
        seconds=round(seconds, 3),
        split_hash=digest(masks)[:16],
        history={part: [round(value, 4) for value in curve] for part, curve in curves.items()},
        **_provenance(prepared.device),
    )


def _test_score(spec: RunSpec, outcome: Outcome) -> dict[str, float | None]:
    """The metric on test nodes, unless it is the accuracy, which all runs have; ``None`` where it is not defined."""
    if spec.metric == "accuracy":
        return {}
    score = outcome.fitted.measure(outcome.masks["test"])[spec.metric]
    return {spec.test_score: None if math.isnan(score) else score}


def _homophily(spec: RunSpec, outcome: Outcome) -> dict[str, Any]:
    """What is known of the given graph and of the learned one before and after training; empty if none is learned.

    Metrics that end in ``_featured`` are of the graphs among the nodes with features. GCN-SL's shift makes all rows
    without features equal, so that A* joins their nodes whatever it has learned.
    """
    prepared, model = outcome.fitted.prepared, outcome.fitted.model
    if not getattr(model, "learns_graph", False):
        return {}
    x, initial = prepared.graph.x, initial_model(prepared, spec.train_seed).eval()
    featured = x.abs() @ torch.ones(x.shape[1], dtype=x.dtype) > 0
    everywhere = _graph_metrics(prepared, model, initial, torch.ones_like(featured))
    among = _graph_metrics(prepared, model, initial, featured)
    return everywhere | {f"{name}_featured": value for name, value in among.items()}


def _graph_metrics(prepared: Prepared, model: Any, initial: Any, nodes: Tensor) -> dict[str, float | None]:
    """Homophily and degree of the graphs among some nodes (n, boolean); ``None`` where there are no edges."""
    graph = prepared.graph
    learned, before = (learned_agreement(each, prepared.inputs, graph.y, among=nodes) for each in (model, initial))
    original = edge_homophily(graph.edge_index[:, nodes[graph.edge_index].all(dim=0)], graph.y, loops=True)
    return {
        "homophily": learned and learned.homophily,
        "degree": learned and learned.degree,
        "homophily_initial": before and before.homophily,
        "homophily_original": None if math.isnan(original) else original,
    }


def search_run(
    spec: RunSpec,
    data: Data,
    *,
    device: torch.device,
    storage: Path,
    root: Path | None = None,
    seconds: float | None = None,
    on_epoch: Callable[..., None] | None = None,
) -> RunResult | None:
    """Search for hyper-parameters, or go on with a search that was interrupted.

    Args:
        storage: The file of trials.
        seconds: Start no trial after so many seconds.

    Returns:
        ``None`` if the time is up before all trials are done.
    """
    began, options = time.perf_counter(), dict(spec.options)
    wanted = Search(
        searched_method(spec),
        data,
        spec.dataset,
        runs=options["search_splits"],
        metric=spec.metric,
        seed=spec.seed,
        device=str(device),
        storage=storage,
        fixed=fixed_options(spec),
        root=root,
    )
    trials = int(min(options["search_trials"], wanted.combinations))

    def is_late() -> bool:
        return seconds is not None and time.perf_counter() - began >= seconds

    try:
        found = search(wanted, trials=trials, seconds=seconds, on_epoch=on_epoch)
    except InputError:  # no trial was finished
        if is_late():
            return None
        raise
    if found.trials < trials and is_late():
        return None
    metrics = {"validation": round(found.score, 6), "trials": found.trials, "options": found.options}
    elapsed = round(time.perf_counter() - began, 3)
    return RunResult(spec=spec, status="ok", metrics=metrics, seconds=elapsed, **_provenance(device))


def time_features(spec: RunSpec, data: Data, *, device: torch.device) -> RunResult:
    """Time the computation of a graph's spectral features.

    It runs in one thread: the gain from several depends more on the machine than on the method.
    """
    x = data.x.to(device)
    options: dict[str, Any] = {"method": spec.method, "random_state": spec.train_seed}
    warm_up = torch.ones(_WARM_UP_ROWS, 2, device=device)
    with one_thread():
        SpectralFeatures(**options, n_components=2, n_anchors=2).fit_transform(warm_up)
        _synchronize(device)
        began = time.perf_counter()
        SpectralFeatures(**options, **dict(spec.options)).fit_transform(x)
        _synchronize(device)
        seconds = round(time.perf_counter() - began, 6)
    return RunResult(spec=spec, status="ok", metrics={"seconds": seconds}, seconds=seconds, **_provenance(device))


def failed_run(spec: RunSpec, error: BaseException | str, *, device: torch.device) -> RunResult:
    """The result of a run that failed."""
    text = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
    return RunResult(spec=spec, status="failed", error=" ".join(text.split())[:500], **_provenance(device))


def _provenance(device: torch.device) -> dict[str, Any]:
    """The machine, the version of this package and the time."""
    gpu = device.type == "cuda"
    name = torch.cuda.get_device_name(device) if gpu else f"CPU ({platform.machine()}, {os.cpu_count()} cores)"
    finished = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
    return {"device": name, "version": __version__, "finished": finished}


def _synchronize(device: torch.device) -> None:
    """Wait until a GPU has finished."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
