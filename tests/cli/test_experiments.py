import json

import pytest

from gcnsl import cli
from gcnsl.cli import experiments as commands
from gcnsl.experiments.records import read_results
from gcnsl.experiments.run import Runner
from gcnsl.methods import METHODS
from gcnsl.runs.executor import ThisProcess

from ..experiments.fake_methods import fake_methods

PART = ("accuracy", "--methods", "mlp,gcn", "--datasets", "synthetic-h0.1,synthetic-h0.9", "--runs", 2, "--jobs", 1)


@pytest.fixture(autouse=True)
def all_methods(monkeypatch):
    """All methods but GCN-SL train in no time."""
    for name, method in fake_methods().items():
        monkeypatch.setitem(METHODS, name, method)
    monkeypatch.setattr("gcnsl.runs.processes.Processes", lambda jobs: ThisProcess())


@pytest.fixture
def store(tmp_path):
    return tmp_path / "results.jsonl"


def test_reproduce_a_part_and_nothing_twice(gcnsl, store, monkeypatch) -> None:
    code, out, err = gcnsl("reproduce", *PART, "--device", "cpu", "--store", store)
    assert code == 0
    assert err.splitlines() == ["8 runs, 0 of them already done"]
    assert "Test accuracy of all methods, random splits" in out
    assert "h = 0.9" in out
    assert len(read_results(store)) == 8
    monkeypatch.setattr(Runner, "__call__", lambda *_: pytest.fail("nothing is left to do"))
    code, again, err = gcnsl("reproduce", *PART, "--store", store)
    assert (code, again) == (0, out)
    assert err.splitlines() == ["8 runs, 8 of them already done"]


def test_failures_are_shown_and_retried(gcnsl, store, monkeypatch) -> None:
    broken = METHODS["mlp"].with_options(fails=True)
    good = METHODS["mlp"]
    monkeypatch.setitem(METHODS, "mlp", broken)
    code, out, err = gcnsl("reproduce", *PART, "--store", store)
    assert code == commands.SOME_FAILED
    assert "(0/2)" in out
    assert "failed: mlp on synthetic-h0.1 (random, run 0) and 3 more: TrainingDiverged: training diverged" in err
    assert "--retry" in err
    monkeypatch.setattr(type(good.config), "build", type(METHODS["nlgnn"].config).build)
    assert gcnsl("reproduce", *PART, "--store", store)[0] == commands.SOME_FAILED
    assert gcnsl("reproduce", *PART, "--store", store, "--retry")[0] == 0


BEYOND = ("beyond", "--methods", "mlp", "--datasets", "synthetic-h0.1", "--trials", 2, "--runs", 2, "--jobs", 1)


def test_beyond_the_paper_searches_come_first(gcnsl, store, tmp_path) -> None:
    code, out, err = gcnsl("reproduce", *BEYOND, "--device", "cpu", "--store", store)
    assert code == 0
    assert err.splitlines() == ["1 runs, 0 of them already done"]
    assert "All methods with equal budgets" in out
    assert "Hyper-parameters are the best of 2 trials for each method and graph" in out
    code, again, err = gcnsl("reproduce", *BEYOND, "--store", store)
    assert (code, again) == (0, out)
    assert err.splitlines() == ["3 runs, 3 of them already done"]
    gcnsl("report", "--store", store, "-o", tmp_path / "page.html", "--markdown", tmp_path / "tables.md")
    assert "- Hyper-parameters are the best of 2 trials" in (tmp_path / "tables.md").read_text(encoding="utf-8")


def test_ctrl_c_says_how_to_go_on(gcnsl, store, monkeypatch) -> None:
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Runner, "__call__", interrupted)
    code, out, err = gcnsl("reproduce", *PART, "--store", store)
    assert code == cli.INTERRUPTED
    assert out == ""
    assert f"The finished runs are in {store}; the same command continues from there." in err.replace("\n", " ")


def test_report_writes_all_that_is_asked_for(gcnsl, store, tmp_path) -> None:
    gcnsl("reproduce", *PART, "--store", store)
    wanted = {
        "--output": tmp_path / "pages" / "report.html",
        "--markdown": tmp_path / "tables.md",
        "--figures": tmp_path / "figures",
    }
    code, out, _ = gcnsl("report", "--store", store, *(part for pair in wanted.items() for part in pair))
    assert code == 0
    for path in wanted.values():
        assert path.exists()
        assert str(path) in out
    assert "GCN-SL, reproduced" in wanted["--output"].read_text(encoding="utf-8")
    assert "| MLP |" in wanted["--markdown"].read_text(encoding="utf-8")
    assert (wanted["--figures"] / "synthetic-random.svg").read_text(encoding="utf-8").startswith("<?xml")


def test_report_as_json(gcnsl, store, tmp_path) -> None:
    gcnsl("reproduce", *PART, "--store", store)
    code, out, _ = gcnsl("report", "--store", store, "--json", "-o", tmp_path / "report.html")
    assert code == 0
    cells = json.loads(out)
    _, told, _ = gcnsl("reproduce", *PART, "--store", store, "--json")
    assert json.loads(told) == [cell | {"experiment": "accuracy"} for cell in cells]
    assert {(cell["method"], cell["dataset"], cell["split"], cell["runs"]) for cell in cells} == {
        (method, dataset, "random", 2) for method in ("mlp", "gcn") for dataset in ("synthetic-h0.1", "synthetic-h0.9")
    }
    assert not (tmp_path / "report.html").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["accuracy", "--datasets", "debian", "--splits", "geom-gcn"], "--splits geom-gcn does not exist for debian"),
        (["accuracy", "--runs", "11", "--splits", "geom-gcn"], "--runs 11 must be from 1 to 10"),
        (["accuracy", "--minutes", "0"], "--minutes 0.0 must be > 0"),
    ],
)
def test_users_errors_are_one_line(gcnsl, store, arguments, message) -> None:
    code, out, err = gcnsl("reproduce", *arguments, "--store", store)
    assert code == cli.BAD_INPUT
    assert out == ""
    assert message in err
    assert err.strip().splitlines()[-1].startswith("Error:")
    assert "Traceback" not in err
