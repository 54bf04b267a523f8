"""Runs: what is measured of each, and what becomes of many, wherever they are carried out."""

import math
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from gcnsl import InputError, synthetic
from gcnsl.datasets import with_random_split
from gcnsl.experiments import run
from gcnsl.experiments.beyond import Place, search_spec
from gcnsl.experiments.plan import CURVE_STEP, Scope, plan, specs_of
from gcnsl.experiments.records import RunSpec, as_options, by_spec, read_results
from gcnsl.experiments.run import (
    Runner,
    cost,
    execute,
    missing_runs,
    train_run,
)
from gcnsl.methods import METHODS, Method, Prepared, prepare
from gcnsl.methods.registry import space_of
from gcnsl.runs.executor import ThisProcess

from ..runs.fake_executor import FakeExecutor
from ..runs.watching import children, is_running, wait_until
from . import run_in_processes
from .cases import spec
from .fake_methods import LOG, fake_methods

CPU = torch.device("cpu")
QUICK = {"epochs": 3, "patience": 2, "n_anchors": 8, "n_components": 3, "hidden_channels": 4}


def graph():
    data = synthetic(n=60, h=0.3, classes=3, degree=4, features=12, seed=0, signal=0.9)
    return with_random_split(data, runs=2, seed=0)


def prepared(method: Method) -> Prepared:
    return prepare(method, graph(), seed=0, device=CPU)


def test_what_is_measured_of_gcn_sl() -> None:
    ready = prepared(METHODS["gcn-sl-cc"].with_options(**QUICK))
    first, second = (train_run(spec(run), ready) for run in range(2))
    assert first.status == second.status == "ok"
    assert first.spec == spec(0)
    assert first.metrics.keys() == {
        *("train", "val", "test", "train_nodes", "test_nodes", "epochs", "best_epoch"),
        *("homophily", "degree", "homophily_initial", "homophily_original"),
        *("homophily_featured", "degree_featured", "homophily_initial_featured", "homophily_original_featured"),
    }
    without = train_run(spec(curves=True), prepared(fake_methods()["mlp"]))
    assert "homophily" not in without.metrics, "it learns no graph"
    assert without.history.keys() == {"train", "val", "test"}
    assert {len(curve) for curve in without.history.values()} == {-(-3 // CURVE_STEP)}
    assert first.metrics["homophily_featured"] == first.metrics["homophily"], "every node has features"
    assert first.metrics["homophily_original"] == pytest.approx(0.3, abs=0.01)
    assert (first.metrics["train_nodes"], first.metrics["test_nodes"]) == (30, 12)
    assert first.metrics["epochs"] == 3
    assert first.split_hash != second.split_hash
    assert first.device.startswith("CPU (")
    assert first.version
    assert first.finished
    assert first.seconds > 0
    assert first.history == {}


def searched(trials_file, name="mlp", trials=3, seconds=math.inf, **fixed):
    """Search for hyper-parameters of a fake method."""
    wanted = search_spec(name, Place("texas", "geom-gcn"), seed=0, trials=trials, **fixed)
    return Runner("cpu", None, 2, time.time() + seconds, trials_file)._search(wanted, graph(), CPU)


@pytest.mark.usefixtures("all_methods")
@pytest.mark.parametrize("kept", [True, False])
def test_a_search_tells_what_it_has_found(tmp_path, kept) -> None:
    result = searched(tmp_path / "trials.jsonl" if kept else None, "gcn-sl-plus", contrast=0.0, dropout=0.1)
    assert result.status == "ok"
    assert result.metrics["trials"] == 3
    assert 0 < result.metrics["validation"] <= 1
    assert result.metrics["options"].keys() == space_of("gcn-sl-plus").keys() - {"dropout", "contrast"}
    assert (result.seconds > 0, result.device[:3]) == (True, "CPU")
    assert (tmp_path / "trials.jsonl").exists() == kept


def test_a_search_without_time_goes_on_later(log, tmp_path, monkeypatch) -> None:
    file = tmp_path / "trials.jsonl"
    assert searched(file, trials=2).metrics["trials"] == 2
    assert searched(file, trials=30, seconds=1e-9) is None
    log.clear()
    assert searched(file, trials=3).metrics["trials"] == 3
    assert log.count("build mlp") <= 2

    def nothing(*_, **__):
        raise InputError("no trial was finished")

    monkeypatch.setattr(run, "search", nothing)
    assert searched(file, seconds=1e-9) is None
    with pytest.raises(InputError, match="no trial was finished"):
        searched(file, seconds=100.0)


PROGRAM = [sys.executable, str(Path(run_in_processes.__file__))]
SCOPE = Scope(methods=["mlp", "gcn"], datasets=["texas"], splits=["random"], runs=4)


@pytest.fixture
def log(all_methods):
    """What the fake methods do, a line each."""
    LOG.clear()
    return LOG


@pytest.fixture
def store(tmp_path):
    return tmp_path / "results.jsonl"


def planned(name, scope) -> list[RunSpec]:
    return specs_of(plan(name, scope))


def stored(store) -> dict:
    return by_spec(read_results(store))


def run_missing(specs, store, executor=None, *, retry=False, **options) -> None:
    """What ``gcnsl reproduce`` does."""
    missing = missing_runs(specs, stored(store), retry=retry)
    execute(missing, store, executor or ThisProcess(), device="cpu", **options)


def numbers(store) -> dict:
    return {result.spec: (result.status, result.metrics, result.split_hash) for result in read_results(store)}


@pytest.mark.usefixtures("small_graphs", "all_methods")
def test_the_same_numbers_alone_together_and_elsewhere_each_stored_at_once(tmp_path) -> None:
    specs, told, counts = planned("accuracy", SCOPE), [], []
    there = tmp_path / "there.jsonl"

    def tell(result) -> None:
        told.append((result.spec, result.status))
        counts.append(len(read_results(there)))

    execute(specs, there, FakeExecutor(), device="cpu", on_result=tell)
    execute(specs, tmp_path / "here.jsonl", ThisProcess(), device="cpu")
    execute(specs[-1:], tmp_path / "alone.jsonl", ThisProcess(), device="cpu")
    assert numbers(there) == numbers(tmp_path / "here.jsonl")
    assert numbers(tmp_path / "alone.jsonl").items() < numbers(there).items()
    assert set(told) == {(spec, "ok") for spec in specs}
    assert counts == list(range(1, 9))


@pytest.mark.usefixtures("small_graphs")
def test_graphs_are_prepared_once_a_group_and_nothing_is_done_twice(log, store) -> None:
    specs = planned("accuracy", SCOPE)
    run_missing(specs[:6], store)
    run_missing(specs, store)
    assert log.count("build mlp") == log.count("build gcn") == 4
    assert log.count("prepare mlp") == 1
    assert log.count("prepare gcn") == 2
    assert len(read_results(store)) == 8


@pytest.mark.usefixtures("small_graphs")
@pytest.mark.parametrize("executor", [ThisProcess(), FakeExecutor()])
def test_a_search_is_followed_by_its_runs_and_is_not_repeated(log, store, executor) -> None:
    scope = Scope(methods=["mlp"], datasets=["debian"], runs=3, trials=2)

    def specs():
        return planned("beyond", replace(scope, results=stored(store)))

    (search,) = specs()
    assert cost(search) == 4 * cost(replace(search, task="train"))
    run_missing([search], store, executor, runs_after_search=3)
    assert {result.spec for result in read_results(store)} == set(specs())
    assert [result.status for result in read_results(store)] == ["ok"] * 4
    assert log.count("build mlp") == 2 * 2 + 3
    lines = store.read_text(encoding="utf-8").splitlines(keepends=True)
    store.write_text("".join(lines[:2]), encoding="utf-8")  # interrupted after the first run
    run_missing(specs(), store)
    assert len(read_results(store)) == 4
    assert log.count("build mlp") == 2 * 2 + 3 + 2


@pytest.mark.usefixtures("small_graphs")
def test_failures_are_recorded_the_rest_goes_on_and_they_are_retried_when_asked(log, store, monkeypatch) -> None:
    specs = planned("accuracy", replace(SCOPE, runs=2))
    broken = [
        replace(s, options=as_options(dict(s.options) | {"fails": True})) if s.method == "mlp" else s for s in specs
    ]
    run_missing(broken, store)
    found = {(r.spec.method, r.spec.run): (r.status, r.error) for r in read_results(store)}
    error = "TrainingDiverged: training diverged: as it was told to"
    assert found == {
        **{("gcn", run): ("ok", "") for run in (0, 1)},
        **{("mlp", run): ("failed", error) for run in (0, 1)},
    }
    tries = log.count("build mlp")
    run_missing(broken, store)
    assert log.count("build mlp") == tries
    monkeypatch.setattr(type(METHODS["mlp"].config), "build", type(METHODS["nlgnn"].config).build)
    run_missing(broken, store, retry=True)
    assert {each.status for each in stored(store).values()} == {"ok"}


@pytest.mark.usefixtures("small_graphs", "all_methods")
def test_a_run_that_kills_its_workers_has_failed(store) -> None:
    specs = planned("accuracy", SCOPE)
    execute(specs, store, FakeExecutor(lost=specs[:1]), device="cpu")
    found = {result.spec: (result.status, result.error) for result in read_results(store)}
    assert found.pop(specs[0]) == ("failed", "killed")
    assert set(found.values()) == {("ok", "")}


@pytest.mark.usefixtures("small_graphs")
def test_the_time_of_features_is_measured_here(store) -> None:
    timed = planned("runtime", Scope(datasets=["texas"], methods=["gcn-sl"]))[:1]
    unused = FakeExecutor()
    execute(timed, store, unused, device="cpu", minutes=1)
    assert [(result.spec.task, result.status) for result in read_results(store)] == [("features", "ok")]
    assert unused.most_under_way == 0


@pytest.mark.slow
def test_killed_it_goes_on_and_repeats_nothing(store) -> None:
    with subprocess.Popen([*PROGRAM, store, "30"], stdout=subprocess.PIPE, text=True) as program:
        next(program.stdout)
        helpers = children(program.pid)
        program.kill()
    wait_until(lambda: not any(map(is_running, helpers)))
    before = {result.spec.run: result for result in read_results(store)}
    assert 0 < len(before) < run_in_processes.RUNS
    told = []
    run_missing(run_in_processes.specs(30), store, on_result=lambda result: told.append(result.spec.run))
    after = {result.spec.run: result for result in read_results(store)}
    assert {result.status for result in after.values()} == {"ok"}
    assert sorted(told) == sorted(after.keys() - before.keys())
    assert {number: after[number] for number in before} == before


@pytest.mark.slow
def test_ctrl_c_ends_all_processes_quietly(store) -> None:
    piped = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "start_new_session": True}
    with subprocess.Popen([*PROGRAM, store, "30"], **piped) as program:
        next(program.stdout)
        helpers = children(program.pid)
        os.killpg(program.pid, signal.SIGINT)
        out, err = program.communicate(timeout=30)
    assert out.strip().endswith("interrupted")
    assert err == ""
    wait_until(lambda: not any(map(is_running, helpers)))
