import time

import pytest

from gcnsl.errors import DownloadError
from gcnsl.experiments import run, run_elsewhere
from gcnsl.experiments.plan import Scope, plan
from gcnsl.experiments.result_exports import read_results
from gcnsl.experiments.result_store import ResultStore, by_key
from gcnsl.experiments.run_elsewhere import execute_elsewhere

from ..runs.fake_executor import FakeExecutor

pytestmark = pytest.mark.usefixtures("small_graphs", "all_methods")
SCOPE = Scope(methods=["mlp", "gcn"], datasets=["texas"], splits=["random"], runs=4)


def numbers(store) -> dict:
    return {result.spec: (result.status, result.metrics, result.split_hash) for result in read_results(store)}


@pytest.mark.parametrize("seed", range(3))
def test_the_same_as_here_each_run_once(tmp_path, seed) -> None:
    specs, told = plan("accuracy", SCOPE).specs, []
    execute_elsewhere(
        specs,
        tmp_path / "there.db",
        FakeExecutor(seed=seed),
        device="cpu",
        on_result=lambda spec, status: told.append((spec.key, status)),
    )
    run.execute(specs, tmp_path / "here.db", device="cpu", jobs=1)
    assert numbers(tmp_path / "there.db") == numbers(tmp_path / "here.db")
    assert sorted(told) == sorted((spec.key, "ok") for spec in specs)


def test_a_result_is_stored_at_once(tmp_path) -> None:
    store, stored = tmp_path / "r.db", []
    execute_elsewhere(
        plan("accuracy", SCOPE).specs,
        store,
        FakeExecutor(),
        device="cpu",
        on_result=lambda *_: stored.append(len(read_results(store))),
    )
    assert stored == list(range(1, 9))


def test_a_run_that_kills_its_workers_has_failed(tmp_path) -> None:
    specs = plan("accuracy", SCOPE).specs
    execute_elsewhere(specs, tmp_path / "r.db", FakeExecutor(lost=specs[:1]), device="cpu")
    found = {result.spec: (result.status, result.error) for result in read_results(tmp_path / "r.db")}
    assert found.pop(specs[0]) == ("failed", "killed")
    assert set(found.values()) == {("ok", "")}


def test_a_search_is_followed_by_its_runs_and_leaves_no_file(tmp_path) -> None:
    scope, store = Scope(methods=["mlp"], datasets=["debian"], runs=3, trials=2), tmp_path / "r.db"
    specs, told = plan("beyond", scope).specs, []
    execute_elsewhere(
        specs, store, FakeExecutor(), device="cpu", runs_after_search=3, on_result=lambda spec, _: told.append(spec)
    )
    assert told == list(specs), "progress counts what was asked for"
    with ResultStore(store) as opened:
        scope = Scope(**{**vars(scope), "results": by_key(opened.results())})
    assert {result.spec for result in read_results(store)} == set(plan("beyond", scope).specs)
    assert [result.status for result in read_results(store)] == ["ok"] * 4
    assert list(tmp_path.iterdir()) == [store]


def test_the_time_of_features_is_measured_here(tmp_path) -> None:
    specs = plan("runtime", Scope(datasets=["texas"], methods=["gcn-sl"])).specs
    timed = [spec for spec in specs if spec.task == "features"][:1]
    execute_elsewhere(timed, tmp_path / "r.db", FakeExecutor(), device="cpu", minutes=1)
    assert [result.status for result in read_results(tmp_path / "r.db")] == ["ok"]


def test_nothing_is_begun_when_the_time_is_up(tmp_path) -> None:
    specs = plan("accuracy", SCOPE).specs
    execute_elsewhere(specs, tmp_path / "r.db", FakeExecutor(), device="cpu", minutes=1e-9)
    assert read_results(tmp_path / "r.db") == []


def test_a_graph_that_workers_do_not_have_is_sent(tmp_path, monkeypatch) -> None:
    specs = plan("accuracy", SCOPE).specs
    run.execute(specs, tmp_path / "here.db", device="cpu", jobs=1)
    read = run_elsewhere.Runner._read

    def only_if_sent(self, spec):
        if self.graph is None:
            raise DownloadError("no network")
        return read(self, spec)

    monkeypatch.setattr(run_elsewhere.Runner, "_read", only_if_sent)
    executor = FakeExecutor()
    execute_elsewhere(specs, tmp_path / "there.db", executor, device="cpu")
    assert numbers(tmp_path / "there.db") == numbers(tmp_path / "here.db")
    assert executor.calls_sent == 2, "first without the graph, then with it"


def test_a_graph_that_is_sent_has_splits_for_a_search(tmp_path, monkeypatch) -> None:
    sent = []
    read = run_elsewhere.Runner._read

    def only_if_sent(self, spec):
        if self.graph is None:
            raise DownloadError("no network")
        sent.append(self.graph.train_mask.shape[1])
        return read(self, spec)

    monkeypatch.setattr(run_elsewhere.Runner, "_read", only_if_sent)
    one_run = plan("accuracy", Scope(**{**vars(SCOPE), "datasets": ["debian"], "runs": 1})).specs
    search = plan("beyond", Scope(methods=["mlp"], datasets=["debian"], runs=1, trials=2)).specs
    execute_elsewhere([*one_run, *search], tmp_path / "r.db", FakeExecutor(), device="cpu", runs_after_search=1)
    assert {result.status for result in read_results(tmp_path / "r.db")} == {"ok"}
    assert min(sent) >= 2


def test_a_graph_that_nobody_has_fails_its_runs(tmp_path, monkeypatch) -> None:
    def nowhere(*_, **__):
        raise DownloadError("no network")

    monkeypatch.setattr(run, "load", nowhere)
    execute_elsewhere(plan("accuracy", SCOPE).specs, tmp_path / "r.db", FakeExecutor(), device="cpu")
    assert [result.error for result in read_results(tmp_path / "r.db")] == ["DownloadError: no network"] * 8


def test_what_else_goes_wrong_fails_one_run(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(run, "train_run", lambda spec, *_, **__: 1 / (spec.run - 2))
    specs = plan("accuracy", SCOPE).specs
    runner = run_elsewhere.Runner("cpu", None, 4)
    assert runner(specs[2]).error == "ZeroDivisionError: division by zero"
    assert runner(specs[1]) == -1.0
    assert run_elsewhere.Runner("cpu", None, 4, end=time.time())(specs[1]) is None
