import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from gcnsl import InputError
from gcnsl.errors import GcnslError
from gcnsl.experiments import run
from gcnsl.experiments.plan import Scope, plan
from gcnsl.experiments.result_exports import export_lines, import_lines, read_results
from gcnsl.experiments.result_store import ResultStore, RunResult, by_key
from gcnsl.experiments.spec import RunSpec, as_options
from gcnsl.methods import METHODS

from . import run_in_processes
from .fake_methods import LOG

PROGRAM = [sys.executable, str(Path(run_in_processes.__file__))]


@pytest.fixture
def log(all_methods):
    """What the fake methods do, a line each."""
    LOG.clear()
    return LOG


@pytest.fixture
def quick(tmp_path):
    """Settings for GCN-SL that take no time."""
    (tmp_path / "texas.toml").write_text(
        "[gcn-sl-cc.options]\nepochs = 3\npatience = 2\nn_anchors = 8\nn_components = 3\nhidden_channels = 4\n"
    )
    return tmp_path


def run_missing(specs, store, *, retry=False, **options) -> None:
    """What ``gcnsl reproduce`` does."""
    with ResultStore(store) as opened:
        missing = run.missing_runs(specs, by_key(opened.results()), retry=retry)
    run.execute(missing, store, device="cpu", jobs=1, **options)


@pytest.mark.usefixtures("small_graphs")
def test_the_same_run_gives_the_same_numbers_alone_and_in_a_group(quick, tmp_path) -> None:
    specs = plan(
        "accuracy", Scope(methods=["gcn-sl"], datasets=["texas"], splits=["random"], settings=quick, runs=3)
    ).specs
    run.execute(specs, tmp_path / "all.db", device="cpu", jobs=1)
    run.execute(specs[2:], tmp_path / "one.db", device="cpu", jobs=1)
    (alone,) = read_results(tmp_path / "one.db")
    together = {result.spec: result for result in read_results(tmp_path / "all.db")}[specs[2]]
    assert alone.metrics == together.metrics
    assert alone.split_hash == together.split_hash


@pytest.mark.usefixtures("small_graphs")
def test_graphs_are_prepared_once_a_group_and_nothing_is_done_twice(log, tmp_path) -> None:
    specs = plan("accuracy", Scope(methods=["mlp", "gcn"], datasets=["texas"], splits=["random"], runs=4)).specs
    told = []
    run_missing(specs[:6], tmp_path / "r.db", on_result=lambda spec, status: told.append(spec))
    assert set(told) == set(specs[:6])
    run_missing(specs, tmp_path / "r.db")
    run.execute(specs, tmp_path / "r.db", device="cpu", jobs=1)  # good results are not repeated, whatever is asked for
    assert log.count("build mlp") == log.count("build gcn") == 4
    assert log.count("prepare mlp") == 1
    assert log.count("prepare gcn") == 2
    assert len(read_results(tmp_path / "r.db")) == 8


@pytest.fixture
def beyond(log):
    """Plan an experiment with one search, given the results in a store."""
    scope = Scope(methods=["mlp"], datasets=["debian"], runs=3, trials=2)

    def planned(store):
        with ResultStore(store) as opened:
            return plan("beyond", replace(scope, results=by_key(opened.results()))).specs

    return planned


@pytest.mark.usefixtures("small_graphs")
def test_a_search_is_followed_by_its_runs(beyond, log, tmp_path) -> None:
    store = tmp_path / "r.db"
    run_missing(beyond(store), store, runs_after_search=3)
    assert log.count("build mlp") == 2 * 2 + 3, "two trials on two splits, then the runs"
    assert {result.status for result in read_results(store)} == {"ok"}
    assert {result.spec for result in read_results(store)} == set(beyond(store))
    assert list(tmp_path.iterdir()) == [store], "no file of trials is left behind"
    run_missing(beyond(store), store, runs_after_search=3)
    assert log.count("build mlp") == 2 * 2 + 3
    export_lines(read_results(store), tmp_path / "r.jsonl")
    assert list(import_lines(tmp_path / "r.jsonl")) == read_results(store)


@pytest.mark.usefixtures("small_graphs")
def test_a_search_that_fails_is_followed_by_nothing(beyond, tmp_path, monkeypatch) -> None:
    store = tmp_path / "r.db"
    monkeypatch.setattr(run, "search_run", lambda *_, **__: 1 / 0)
    run_missing(beyond(store), store, runs_after_search=3)
    (failed,) = read_results(store)
    assert failed.error == "ZeroDivisionError: division by zero"
    assert beyond(store) == [failed.spec]


@pytest.mark.usefixtures("small_graphs")
def test_nothing_is_begun_when_the_time_is_up_and_nothing_is_lost(beyond, log, tmp_path, monkeypatch) -> None:
    store, left = tmp_path / "r.db", iter([1e9] * 5 + [0.0] * 10)
    (search,) = beyond(store)
    run_missing([search], store, runs_after_search=3, minutes=1e-9)
    assert (read_results(store), log) == ([], [])
    with monkeypatch.context() as patch:
        patch.setattr(run.Work, "seconds_left", property(lambda _: next(left)))
        run_missing([search], store, runs_after_search=3)
    assert 1 < len(read_results(store)) < 4, "the search and some of its runs"
    run_missing(beyond(store), store)
    assert len(read_results(store)) == 4
    assert log.count("build mlp") == 2 * 2 + 3


def test_a_search_costs_as_much_as_its_trainings(beyond, tmp_path) -> None:
    (search,) = beyond(tmp_path / "r.db")
    assert run.cost(search) == 4 * run.cost(replace(search, task="train"))


def test_work_is_shared_out_in_parts_the_large_ones_first() -> None:
    specs = [RunSpec("mlp", dataset, "random", number, 0, ()) for dataset in ("texas", "pubmed") for number in range(5)]
    orders = set()
    for _ in range(20):
        parts = tuple(tuple((spec.dataset, spec.run) for spec in group) for group in run._groups(specs, shares=2))
        large, small = parts[:3], parts[3:]
        assert sorted(large) == [(("pubmed", 0), ("pubmed", 1)), (("pubmed", 2), ("pubmed", 3)), (("pubmed", 4),)]
        assert small == (tuple(("texas", number) for number in range(5)),)
        orders.add(parts)
    assert len(orders) > 1, "two programs on one store would begin with the same runs"


@pytest.mark.usefixtures("small_graphs")
def test_failures_are_recorded_the_rest_goes_on_and_they_are_retried_when_asked(log, tmp_path, monkeypatch) -> None:
    specs = plan("accuracy", Scope(methods=["mlp", "gcn"], datasets=["texas"], splits=["random"], runs=2)).specs
    broken = [
        replace(s, options=as_options(dict(s.options) | {"fails": True})) if s.method == "mlp" else s for s in specs
    ]
    store = tmp_path / "r.db"
    run_missing(broken, store)
    found = {(r.spec.method, r.spec.run): (r.status, r.error) for r in read_results(store)}
    error = "TrainingDiverged: training diverged: as it was told to"
    assert found == {
        ("gcn", 0): ("ok", ""),
        ("gcn", 1): ("ok", ""),
        ("mlp", 0): ("failed", error),
        ("mlp", 1): ("failed", error),
    }
    tries = log.count("build mlp")
    run_missing(broken, store)
    assert log.count("build mlp") == tries
    told = []
    run_missing(broken, store, retry=True, on_result=lambda spec, status: told.append(status))
    assert log.count("build mlp") == 2 * tries
    assert told == ["failed", "failed"]
    monkeypatch.setattr(type(METHODS["mlp"].config), "build", type(METHODS["nlgnn"].config).build)
    run_missing(broken, store, retry=True)
    assert {r.status for r in read_results(store)} == {"ok"}


def test_a_graph_that_cannot_be_had_fails_its_runs(tmp_path, monkeypatch) -> None:
    def load(name, **_):
        raise GcnslError("no such\ngraph")

    monkeypatch.setattr(run, "load", load)
    specs = run_in_processes.specs()
    run.execute(specs, tmp_path / "r.db", device="cpu", jobs=1)
    assert [r.error for r in read_results(tmp_path / "r.db")] == ["GcnslError: no such graph"] * len(specs)


def test_missing_runs_are_those_without_a_result() -> None:
    specs = run_in_processes.specs()
    older = replace(specs[0], options=tuple((name, value) for name, value in specs[0].options if name != "epsilon"))
    good = RunResult(older, "ok")  # from before there was an option
    results = by_key([good, RunResult(specs[1], "failed")])
    assert run.missing_runs([*specs, *specs], results) == specs[2:]
    assert run.missing_runs([*specs, *specs], results, retry=True) == specs[1:]


def test_bad_devices_and_jobs(tmp_path) -> None:
    with pytest.raises(InputError, match=r"device\('gpu'\)"):
        run.execute([], tmp_path / "r.db", device="gpu")
    with pytest.raises(InputError, match=r"jobs\(0\) must be >= 1"):
        run.execute([], tmp_path / "r.db", device="cpu", jobs=0)
    with pytest.raises(InputError, match=r"minutes\(0\) must be > 0"):
        run.execute([], tmp_path / "r.db", device="cpu", minutes=0)


def test_a_dead_process_costs_one_run(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(run, "run_group", run_in_processes.fatal_group)
    run.execute(run_in_processes.specs()[:2], tmp_path / "r.db", device="cpu", jobs=2)
    found = {result.spec.run: (result.status, result.error) for result in read_results(tmp_path / "r.db")}
    assert found.pop(1) == ("failed", "its process was killed, perhaps for lack of memory")
    assert found == {0: ("ok", "")}


def test_a_run_that_has_killed_a_single_process_comes_last_and_in_another(tmp_path, monkeypatch) -> None:
    store, specs = tmp_path / "r.db", run_in_processes.specs()[:3]
    with ResultStore(store) as opened:
        mark = opened.begun(specs[1])
        mark.__enter__()  # and the process is killed
    monkeypatch.setattr(run, "run_group", run_in_processes.fatal_group)  # it would end this process, too
    run_missing(specs, store)
    found = {result.spec.run: (result.status, result.error) for result in read_results(store)}
    assert found.pop(1) == ("failed", "its process was killed, perhaps for lack of memory")
    assert found == {0: ("ok", ""), 2: ("ok", "")}


@pytest.mark.usefixtures("small_graphs", "log")
@pytest.mark.filterwarnings("ignore::gcnsl.experiments.result_store.StoreWarning")
def test_a_result_that_cannot_be_stored_is_rescued(tmp_path, monkeypatch) -> None:
    specs = plan("accuracy", Scope(methods=["mlp"], datasets=["texas"], splits=["random"], runs=2)).specs
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("gcnsl.experiments.result_store._WAIT_SECONDS", 0.01)
    add = ResultStore.add

    def locked(store, *results) -> None:
        with closing(sqlite3.connect(store.path, isolation_level=None)) as connection:
            connection.execute("BEGIN EXCLUSIVE")
            add(store, *results)

    with monkeypatch.context() as patched:
        patched.setattr(ResultStore, "add", locked)
        with pytest.raises(
            InputError, match=r"database is locked.*; what is not stored is in .*results.jsonl: --merge"
        ):
            run.execute(specs, tmp_path / "r.db", device="cpu", jobs=1)
    (rescued,) = tmp_path.glob("gcnsl-*/results.jsonl")
    with ResultStore(tmp_path / "r.db") as store:
        store.add(*import_lines(rescued))
        assert [result.status for result in store.results()] == ["ok"]


def test_killed_it_goes_on_and_repeats_nothing(tmp_path) -> None:
    store = tmp_path / "r.db"
    with subprocess.Popen([*PROGRAM, store, "100"], stdout=subprocess.PIPE, text=True) as program:
        next(program.stdout)
        helpers = _children(program.pid)
        program.kill()
    _wait_until(lambda: not any(map(_alive, helpers)))
    before = {result.spec.run: result for result in read_results(store)}
    assert 0 < len(before) < run_in_processes.RUNS
    told = []
    run_missing(run_in_processes.specs(100), store, on_result=lambda spec, _: told.append(spec.run))
    after = {result.spec.run: result for result in read_results(store)}
    assert {result.status for result in after.values()} == {"ok"}
    assert sorted(told) == sorted(after.keys() - before.keys())
    assert {number: after[number] for number in before} == before
    export_lines(after.values(), tmp_path / "r.jsonl")
    assert len(list(import_lines(tmp_path / "r.jsonl"))) == run_in_processes.RUNS


def test_ctrl_c_ends_all_processes_quietly(tmp_path) -> None:
    with subprocess.Popen(
        [*PROGRAM, tmp_path / "r.db", "100"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as program:
        next(program.stdout)
        helpers = _children(program.pid)
        os.killpg(program.pid, signal.SIGINT)
        out, err = program.communicate(timeout=30)
    assert out.strip().endswith("interrupted")
    assert err == ""
    _wait_until(lambda: not any(map(_alive, helpers)))


def _children(parent: int) -> list[int]:
    listed = Path(f"/proc/{parent}/task/{parent}/children")
    return [int(number) for number in listed.read_text().split()]


def _alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _wait_until(true, seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.05)
