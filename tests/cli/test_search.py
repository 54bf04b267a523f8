import json

import pytest

from gcnsl import cli
from gcnsl.methods import METHODS, resolve
from gcnsl.methods.registry import space_of
from gcnsl.methods.resolver import read_settings
from gcnsl.training import METRICS


@pytest.fixture
def quick_gcn_sl(monkeypatch):
    monkeypatch.setitem(METHODS, "gcn-sl-cc", METHODS["gcn-sl-cc"].with_options(epochs=2))


@pytest.mark.usefixtures("quick_gcn_sl")
def test_search_writes_what_reproduce_reads(gcnsl, tmp_path) -> None:
    settings, study = tmp_path / "settings" / "debian.toml", tmp_path / "search.jsonl"
    command = ("search", "debian", "--runs", 1, "--device", "cpu", "--study", study, "-o", settings)
    code, out, _ = gcnsl(*command, "--trials", 2)
    assert code == 0
    assert "after 2 trials" in out
    assert "nothing was better than the settings without a search" in out or "reach " in out
    table = read_settings(settings)["gcn-sl-cc"]
    assert table["search"].items() >= {"trials": 2, "runs": 1, "split": "random", "seed": 42}.items()
    assert 0 < table["search"]["start"] <= table["search"]["validation_accuracy"] < 1
    assert resolve("gcn-sl-cc", settings=settings).options().items() >= table["options"].items()
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
    directed = ("--directed", "--trials", 1, "--runs", 1)
    _, _, err = gcnsl("search", "--nodes", "people.csv", "--edges", "friends.csv", *directed)
    assert err == "Note: gcn-sl-cc does not use the edges' directions\n"
    searches = {json.loads(line)["search"] for line in (tmp_path / "search.jsonl").read_text().splitlines()}
    assert len(searches) == 2, "with directions it is another graph"


@pytest.mark.usefixtures("quick_gcn_sl")
def test_the_metric_judges_and_is_written_down(gcnsl, people, tmp_path) -> None:
    settings = tmp_path / "mine.toml"
    chosen = ("--metric", "log-loss", "--class-weight", "red=2", "-o", settings, "--study", tmp_path / "search.jsonl")
    code, out, err = gcnsl("search", *people, "--trials", 2, "--runs", 1, *chosen)
    assert (code, err) == (0, "")
    assert "Validation log-loss " in out
    table = read_settings(settings)["gcn-sl-cc"]
    assert table["search"]["validation_log_loss"] <= table["search"]["start"]
    assert resolve("gcn-sl-cc", settings=settings).training.monitor == "log-loss"
    assert resolve("gcn-sl-cc", settings=settings).training.class_weight == '{"red": 2.0}'
    told = json.loads(gcnsl("search", *people, "--trials", 2, "--runs", 1, *chosen, "--json")[1])
    assert {name: told[name] for name in ("options", "search")} == table


def test_search_interrupted(gcnsl, tmp_path, monkeypatch) -> None:
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("gcnsl.runs.jobs.fit", interrupted)
    code, _, err = gcnsl(
        "search", "debian", "--trials", 1, "--study", tmp_path / "search.jsonl", "-o", tmp_path / "x.toml"
    )
    assert code == cli.INTERRUPTED
    assert "the same command continues from there" in err.replace("\n", " ")
    assert not (tmp_path / "x.toml").exists()


@pytest.mark.parametrize("method", ["gcn-sl-plus", "boosted-trees"])
def test_every_option_is_listed_with_meaning_range_and_default(gcnsl, method) -> None:
    code, out, err = gcnsl("options", method)
    assert (code, err) == (0, "")
    answer = json.loads(gcnsl("options", method, "--json")[1])
    assert answer.keys() == METHODS[method].options().keys()
    for name, option in answer.items():
        assert name in out
        assert option["meaning"].endswith(".")
        assert option["range"]
    searched = {name for name, option in answer.items() if option["search"] is not None}
    assert searched == space_of(method).keys()


def test_all_methods_and_metrics_are_listed(gcnsl) -> None:
    _, out, _ = gcnsl("options")
    assert all(name in out for name in (*METHODS, *METRICS))
    assert json.loads(gcnsl("options", "--json")[1])["gcn-sl-cc"] == ["gcn-sl"]
