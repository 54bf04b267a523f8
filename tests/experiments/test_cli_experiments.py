import json

import pytest
from plausible import plausible_results

from gcnsl import cli
from gcnsl.cli import experiments as commands
from gcnsl.experiments import run
from gcnsl.experiments.hyperparameters import options_for, read_settings
from gcnsl.experiments.plan import Scope
from gcnsl.experiments.results import ResultStore, export_lines, read_results
from gcnsl.methods import METHODS

pytestmark = pytest.mark.usefixtures("all_methods")

PART = ("accuracy", "--methods", "mlp,gcn", "--datasets", "synthetic-h0.1,synthetic-h0.9", "--runs", 2, "--jobs", 1)


@pytest.fixture
def store(tmp_path):
    return tmp_path / "results.db"


def test_reproduce_a_part_and_nothing_twice(gcnsl, store, monkeypatch) -> None:
    code, out, err = gcnsl("reproduce", *PART, "--device", "cpu", "--store", store)
    assert code == 0
    assert err.splitlines() == ["8 runs, 0 of them done before"]
    assert "Test accuracy of all methods, random splits" in out
    assert "h = 0.9" in out
    assert len(read_results(store)) == 8
    monkeypatch.setattr(run, "run_group", lambda *_: pytest.fail("nothing is left to do"))
    code, again, err = gcnsl("reproduce", *PART, "--store", store)
    assert (code, again) == (0, out)
    assert err.splitlines() == ["8 runs, 8 of them done before"]


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


def test_runs_of_another_machine_are_merged(gcnsl, store, tmp_path, monkeypatch) -> None:
    gcnsl("reproduce", *PART, "--store", store)
    export_lines(read_results(store), tmp_path / "runs.jsonl")
    monkeypatch.setattr(run, "run_group", lambda *_: pytest.fail("nothing is left to do"))
    code, _, err = gcnsl("reproduce", *PART, "--store", tmp_path / "new.db", "--merge", tmp_path / "runs.jsonl")
    assert code == 0
    assert "8 of them done before" in err


def test_ctrl_c_says_how_to_go_on(gcnsl, store, monkeypatch) -> None:
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "run_group", interrupted)
    code, out, err = gcnsl("reproduce", *PART, "--store", store)
    assert code == cli.INTERRUPTED
    assert out == ""
    assert f"What was finished is in {store}; the same command goes on from there." in err.replace("\n", " ")


def test_news_where_there_is_no_terminal(gcnsl, store, monkeypatch) -> None:
    monkeypatch.setattr(commands, "_NEWS_SECONDS", -1)
    _, _, err = gcnsl("reproduce", *PART, "--store", store)
    assert "8/8 runs, about 0 minutes left" in err


def test_report_writes_all_that_is_asked_for(gcnsl, store, tmp_path) -> None:
    gcnsl("reproduce", *PART, "--store", store)
    wanted = {
        "--output": tmp_path / "pages" / "report.html",
        "--markdown": tmp_path / "tables.md",
        "--latex": tmp_path / "tables.tex",
        "--figures": tmp_path / "figures",
        "--export": tmp_path / "runs.jsonl",
    }
    code, out, _ = gcnsl("report", "--store", store, *(part for pair in wanted.items() for part in pair))
    assert code == 0
    for path in wanted.values():
        assert path.exists()
        assert str(path) in out
    assert "GCN-SL, reproduced" in wanted["--output"].read_text(encoding="utf-8")
    assert "| MLP |" in wanted["--markdown"].read_text(encoding="utf-8")
    assert r"\toprule" in wanted["--latex"].read_text(encoding="utf-8")
    assert (wanted["--figures"] / "synthetic-random.svg").read_text(encoding="utf-8").startswith("<?xml")
    assert len(read_results(wanted["--export"])) == 8
    again = tmp_path / "again.html"
    gcnsl("report", "--store", wanted["--export"], "-o", again)
    assert again.read_text(encoding="utf-8") == wanted["--output"].read_text(encoding="utf-8")


def test_markdown_begins_with_the_claims(gcnsl, store, tmp_path) -> None:
    with ResultStore(store) as results:
        results.add(*plausible_results(Scope(datasets=["texas"], methods=["gcn-sl-cc"], runs=4), names=["ablation"]))
    gcnsl("report", "--store", store, "-o", tmp_path / "page.html", "--markdown", tmp_path / "tables.md")
    text = (tmp_path / "tables.md").read_text(encoding="utf-8")
    assert text.startswith("### What the paper claims")
    assert text.index("A is of little use") < text.index("| GCN-SL_cc, A |")


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


def test_report_without_results(gcnsl, tmp_path) -> None:
    code, _, err = gcnsl("report", "--store", tmp_path / "absent.db")
    assert code == cli.BAD_INPUT
    assert "there is no such file; `gcnsl reproduce` makes one" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["speed"], "experiment('speed') must be one of"),
        (["accuracy", "--methods", "gnc"], "method('gnc') must be one of"),
        (["accuracy", "--datasets", "corra"], "dataset('corra') must be one of"),
        (["accuracy", "--runs", "0"], "runs(0) must be >= 1"),
        (["accuracy", "--device", "gpu"], "device('gpu') must be"),
        (["accuracy", "--merge", "absent.jsonl"], "absent.jsonl"),
    ],
)
def test_users_errors_are_one_line(gcnsl, store, arguments, message) -> None:
    code, out, err = gcnsl("reproduce", *arguments, "--store", store)
    assert code == cli.BAD_INPUT
    assert out == ""
    assert message in err
    assert err.strip().splitlines()[-1].startswith("Error:")
    assert "Traceback" not in err


@pytest.fixture
def quick_gcn_sl(monkeypatch):
    monkeypatch.setitem(METHODS, "gcn-sl-cc", METHODS["gcn-sl-cc"].with_options(epochs=2))


@pytest.mark.usefixtures("quick_gcn_sl")
def test_search_writes_what_reproduce_reads(gcnsl, tmp_path) -> None:
    settings, study = tmp_path / "settings" / "debian.toml", tmp_path / "search.db"
    command = ("search", "debian", "--runs", 1, "--device", "cpu", "--study", study, "-o", settings)
    code, out, _ = gcnsl(*command, "--trials", 2)
    assert code == 0
    assert "after 2 trials" in out
    table = read_settings(settings)["gcn-sl-cc"]
    assert table["search"].items() >= {"trials": 2, "runs": 1, "split": "random", "seed": 42}.items()
    assert 0 < table["search"]["validation_accuracy"] < 1
    assert options_for("gcn-sl-cc", "debian", folder=settings.parent).items() >= table["options"].items()
    assert "after 3 trials" in gcnsl(*command, "--trials", 3)[1]
    told = json.loads(gcnsl(*command, "--trials", 3, "--json")[1])
    assert (told["method"], told["file"]) == ("gcn-sl-cc", str(settings))
    assert {name: told[name] for name in ("options", "search")} == read_settings(settings)["gcn-sl-cc"]


@pytest.mark.usefixtures("quick_gcn_sl")
def test_search_on_a_graph_of_one_s_own(gcnsl, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    kinds = ["even" if i % 2 == 0 else "odd" for i in range(40)]
    rows = "".join(f"p{i},{i % 7},{i % 5},{kind}\n" for i, kind in enumerate(kinds))
    (tmp_path / "people.csv").write_text("id,age,score,label\n" + rows)
    (tmp_path / "friends.csv").write_text("source,target\n" + "".join(f"p{i},p{i + 1}\n" for i in range(39)))
    code, out, _ = gcnsl("search", "--nodes", "people.csv", "--edges", "friends.csv", "--trials", 1, "--runs", 1)
    assert code == 0
    assert "Settings: people.toml" in out
    assert (tmp_path / "people.toml").exists()


def test_search_interrupted(gcnsl, tmp_path, monkeypatch) -> None:
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("gcnsl.experiments.search.run_split", interrupted)
    code, _, err = gcnsl(
        "search", "debian", "--trials", 1, "--study", tmp_path / "search.db", "-o", tmp_path / "x.toml"
    )
    assert code == cli.INTERRUPTED
    assert "the same command goes on from there" in err.replace("\n", " ")
    assert not (tmp_path / "x.toml").exists()


def test_search_with_a_wrong_method_is_one_line(gcnsl, tmp_path) -> None:
    code, _, err = gcnsl("search", "debian", "--method", "gnc", "--study", tmp_path / "search.db")
    assert code == cli.BAD_INPUT
    assert "method('gnc') must be one of" in err
