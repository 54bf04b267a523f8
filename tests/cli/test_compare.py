import json
import os
import signal

import numpy as np
import pytest

from gcnsl import cli
from gcnsl.cli.console import ProgressBar
from gcnsl.training import METRICS

from .cases import QUICK

BOTH = ("--models", "gcn-sl,gcn-sl-av")


def test_the_same_as_json(gcnsl, people, tmp_path) -> None:
    command = ("compare", *people, *BOTH, *QUICK, "--runs", 3, "--set", "gcn-sl.epsilon=0.5")
    code, out, _ = gcnsl(*command, "--json")
    answer = json.loads(out)
    assert code == 0
    printed = gcnsl(*command)[1]
    for method in answer["methods"]:
        (row,) = [line for line in printed.splitlines() if line.startswith(f"│ {method['name']}")]
        assert f"│ {100 * method['mean']:.1f} ± {100 * method['std']:.1f} │" in " ".join(row.split())
    assert answer["verdict"] in printed
    assert (answer["graph"], answer["complete"], answer["failures"]) == (tmp_path.name, True, {})
    methods = {method["name"]: method for method in answer["methods"]}
    assert set(methods) == {"gcn-sl-cc", "gcn-sl-av", "majority"}
    majority = methods.pop("majority")
    assert (majority["epochs"], len(set(majority["metrics"]["accuracy"]))) == ([], 1)
    for method in methods.values():
        assert method["metrics"].keys() == METRICS.keys()
        assert len(method["metrics"]["log-loss"]) == 3
        assert method["options"]["epochs"] == 12
    assert methods["gcn-sl-cc"]["options"]["epsilon"] == 0.5
    assert methods["gcn-sl-av"]["options"]["epsilon"] != 0.5
    assert len(answer["differences"]) == 3
    for difference in answer["differences"]:
        assert 0 <= difference["p"] <= 1
        assert difference["verdict"] in ("equal", "clear", "undecided")


PARTS = np.array(["train", "val", "test"])[np.arange(90) % 3]
MLP = ("--models", "mlp", "--set", "epochs=3")


@pytest.fixture
def own_splits(frames, tmp_path):
    """Add columns with splits, and one with folds, to the table of nodes."""

    def write(**columns) -> None:
        named = {name: np.where(frames[0]["label"].isna(), "", values) for name, values in columns.items()}
        frames[0].assign(**named).to_csv(tmp_path / "nodes.csv", index=False)

    return write


def runs_of(answer) -> dict[str, int]:
    return {method["name"]: len(method["metrics"]["accuracy"]) for method in answer["methods"]}


def test_on_a_split_of_ones_own_seeds_differ(gcnsl, people, own_splits) -> None:
    own_splits(split=PARTS)
    answer = json.loads(gcnsl("compare", *people, *MLP, "--json")[1])
    assert runs_of(answer) == {"mlp": 10, "majority": 10}
    assert answer["one_split"] is True
    scores = {method["name"]: method["metrics"]["log-loss"] for method in answer["methods"]}
    assert (len(set(scores["mlp"])), len(set(scores["majority"]))) == (10, 1)
    code, out, err = gcnsl("compare", *people, *MLP, "--runs", 2)
    assert (code, err) == (0, "")
    assert "These are differences between seeds on one split; they say nothing about other splits." in out


def test_every_fold_is_tested(gcnsl, people, own_splits) -> None:
    assert runs_of(json.loads(gcnsl("compare", *people, *MLP, "--folds", 4, "--json")[1]))["mlp"] == 4
    assert runs_of(json.loads(gcnsl("compare", "debian", *MLP, "--folds", 2, "--json")[1]))["mlp"] == 2
    own_splits(part=np.arange(90) % 3)
    answer = json.loads(gcnsl("compare", *people, *MLP, "--fold-column", "part", "--json")[1])
    assert runs_of(answer)["mlp"] == 3
    assert answer["methods"][0]["options"]["epochs"] == 3 or answer["methods"][0]["name"] == "majority"


def test_the_metric_ranks_and_chooses_epochs(gcnsl, people) -> None:
    command = ("compare", *people, *BOTH, *QUICK, "--runs", 2, "--metric", "log-loss", "--class-weight", "balanced")
    answer = json.loads(gcnsl(*command, "--json")[1])
    means = [method["mean"] for method in answer["methods"]]
    assert means == sorted(means), "less is better"
    for method in answer["methods"]:
        assert method["mean"] == pytest.approx(sum(method["metrics"]["log-loss"]) / 2)
        if method["name"] != "majority":
            assert (method["options"]["monitor"], method["options"]["class_weight"]) == ("log-loss", "balanced")
    assert "--metric log-loss --class-weight balanced" in answer["next"]
    assert "test log-loss" in gcnsl(*command)[1]
    told = json.loads(gcnsl(*command, "--set", "monitor=loss", "--json")[1])["methods"]
    assert {method["options"].get("monitor", "loss") for method in told} == {"loss"}


def test_the_data_decide_by_what_methods_are_compared(gcnsl, people, frames, tmp_path) -> None:
    frames[0].assign(label=np.where(np.arange(90) % 6 == 0, "rare", "usual")).to_csv(
        tmp_path / "nodes.csv", index=False
    )
    command = ("compare", *people, *MLP, "--runs", 1)
    told = "Metric: average-precision, since only 17% of the labelled nodes are 'rare'; --metric chooses another\n"
    assert gcnsl(*command)[2] == told
    assert gcnsl(*command, "--quiet")[2] == gcnsl(*command, "--metric", "accuracy")[2] == ""
    answer = json.loads(gcnsl(*command, "--json")[1])
    assert answer["metric"] == "average-precision"
    assert {"average-precision"} == {m["options"]["monitor"] for m in answer["methods"] if m["options"]}


@pytest.mark.parametrize("as_json", [False, True])
def test_ctrl_c_shows_what_is_finished(gcnsl, people, monkeypatch, as_json) -> None:
    update = ProgressBar.update

    def press(bar, *, text, **how) -> None:
        update(bar, text=text, **how)
        if text.startswith("3/20") and "validation" not in text:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(ProgressBar, "update", press)
    code, out, err = gcnsl("compare", *people, *BOTH, *QUICK, *(["--json"] if as_json else []))
    assert code == cli.INTERRUPTED
    assert err == "Interrupted: after 3 of 20 runs\n"
    if as_json:
        answer = json.loads(out)
        assert answer["complete"] is False
        assert sorted(runs_of(answer).values()) == [1, 2, 2]
    else:
        assert "the runs that are finished" in out
        assert "gcn-sl-av" in out


def test_what_diverges_is_left_out(gcnsl, people) -> None:
    code, out, err = gcnsl("compare", *people, *BOTH, *QUICK, "--runs", 1, "--set", "gcn-sl-av.lr=1e30")
    assert code == 0
    assert "gcn-sl-cc" in out
    assert "gcn-sl-av" not in out
    assert err.startswith("Left out: gcn-sl-av, run 0: training diverged")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--models", "mixhop", "--set", "powers=0-2"], "--set powers=0-2: it must be a list of whole numbers"),
        (["--class-weight", "pink=2"], "names 'pink'; the classes are blue, green, red"),
        (["--folds", "99"], "--folds 99 must be from 2 to "),
    ],
)
def test_users_errors_are_one_line(gcnsl, people, arguments, message) -> None:
    models = [] if "--models" in arguments else ["--models", "gcn-sl"]
    code, out, err = gcnsl("compare", *people, *models, *arguments)
    assert (code, out) == (cli.BAD_INPUT, "")
    assert message in err
    assert err.count("\n") == 1
