"""Results as they might have come out, made up: for tests and pictures of tables, figures and the report."""

from dataclasses import replace
from zlib import crc32

import numpy as np

from gcnsl.datasets.benchmarks import synthetic_homophily
from gcnsl.experiments import paper
from gcnsl.experiments.plan import EXPERIMENTS, MERGES, Scope, plan, specs_of
from gcnsl.experiments.records import RunResult, RunSpec, by_spec

LEARNED = {
    "texas": 0.92,
    "wisconsin": 0.96,
    "cornell-geomgcn": 0.89,
    "chameleon": 0.48,
    "squirrel": 0.48,
    "pubmed": 0.85,
}


def plausible_results(scope: Scope, *, names=tuple(EXPERIMENTS)) -> list[RunResult]:
    """A result for every planned run: the paper's accuracy where it has one, and noise; three runs have failed."""
    searches = [_result(spec) for spec in planned(scope, names) if spec.task == "search"]
    results = [_result(spec) for spec in planned(replace(scope, results=by_spec(searches)), names)]
    for index, error in (
        (5, "TrainingDiverged: training diverged: train_loss is nan in epoch 7"),
        (40, "<OOM> & more"),
    ):
        if index < len(results):
            results[index] = RunResult(results[index].spec, "failed", error=error, device="cpu", version="0.1.0")
    return results


def planned(scope: Scope, names) -> list[RunSpec]:
    """All runs of these experiments."""
    return specs_of(table for name in names for table in plan(name, scope))


def _result(spec: RunSpec) -> RunResult:
    rng = np.random.default_rng(crc32(repr(spec).encode()))
    common = {"device": "NVIDIA H200", "version": "0.1.0", "finished": f"2021-06-{spec.run + 1:02d}T12:00:00.000+00:00"}
    if spec.task == "features":
        seconds = {"sc": 3.0, "esc": 0.2, "esc-anch": 0.05}[spec.method] * rng.uniform(0.9, 1.1)
        seconds *= paper.DATASETS[spec.dataset].nodes / 2000
        return RunResult(spec, "ok", {"seconds": seconds}, seconds, **common)
    options = dict(spec.options)
    if spec.task == "search":
        found = {"validation": 0.7, "trials": options["search_trials"], "options": {"lr": 0.02}}
        return RunResult(spec, "ok", found, 60.0, **common)
    mean = _accuracy(spec, options)
    test = float(np.clip(rng.normal(mean, 0.015), 0, 1))
    metrics = {"train": min(1, test + 0.08), "val": test + 0.004, "test": test, "epochs": 412, "best_epoch": 212}
    metrics[spec.test_score] = test
    if options.get("use_reconnected", spec.method == "nlgnn"):
        row = paper.DATASETS.get(spec.dataset)
        original = row.homophily if row else synthetic_homophily(spec.dataset) or 0.5
        learned = LEARNED.get(spec.dataset, 0.7) - (0.2 if spec.method == "nlgnn" else 0)
        initial = original if spec.dataset == "cora" else 0.2 + 0.1 * original
        metrics |= {"homophily": learned + rng.normal(0, 0.01), "homophily_initial": initial, "degree": 4.2}
        metrics["homophily_original"] = original
        metrics |= {f"{name}_featured": metrics[name] for name in metrics if name.startswith(("homophily", "degree"))}
    history = _curves(rng, test, deep=spec.method == "gcn") if spec.curves else {}
    return RunResult(
        spec, "ok", metrics, float(rng.uniform(1, 20)), split_hash=f"{spec.run:016x}", history=history, **common
    )


def _accuracy(spec: RunSpec, options: dict) -> float:
    h = synthetic_homophily(spec.dataset)
    if h is not None:
        if spec.method == "mlp":
            return 0.57
        floor = 0.25 if spec.method in ("gcn", "gat", "geom-gcn") else 0.55
        return floor + (0.98 - floor) * abs(h - 0.2) ** 1.2 / 0.8**1.2
    row = paper.ACCURACY.get(spec.method, paper.ACCURACY["h2gcn-1"]).get(spec.dataset)
    mean = row.mean / 100 if row else 0.6
    if spec.method in MERGES:
        graphs = "+".join(["A"] * options["use_adjacency"] + ["A*"] * options["use_reconnected"])
        printed = paper.ABLATION.get(f"{spec.method} {graphs or 'neither'}")
        mean = printed[spec.dataset].mean / 100 if printed and spec.dataset in printed else mean - 0.03
        mean -= 0.01 * (not options["use_spectral"]) + (0.025 if spec.dataset == "squirrel" else 0.0)
    return mean - 0.02 * max(0, options.get("num_layers", 2) - 2)


def _curves(rng, test: float, *, deep: bool) -> dict[str, list[float]]:
    epochs = np.arange(250)
    rise = 1 - np.exp(-epochs / (12 + 10 * deep))
    fall = 0.02 * deep * epochs / 250
    tops = {"train": 0.99, "val": test, "test": test}
    return {
        name: np.round(top * rise - fall * (name != "train") + rng.normal(0, 0.004, 250), 4).clip(0, 1).tolist()
        for name, top in tops.items()
    }
