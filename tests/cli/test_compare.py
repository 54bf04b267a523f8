import json
import os
import signal
from contextlib import contextmanager

import pytest

from gcnsl import cli

from .cases import QUICK

BOTH = ("--models", "gcn-sl,gcn-sl-av")


def test_own_tables(gcnsl, people, tmp_path) -> None:
    plot = tmp_path / "comparison.png"
    code, out, err = gcnsl("compare", *people, *BOTH, *QUICK, "--runs", 3, "--plot", plot)
    assert (code, err) == (0, "")
    assert f"{tmp_path.name}, 3 runs" in out
    assert "gcn-sl-cc" in out
    assert "gcn-sl-av" in out
    assert " leads" in out
    best = "gcn-sl-cc" if out.index("│ gcn-sl-cc") < out.index("│ gcn-sl-av") else "gcn-sl-av"
    sets = " ".join(QUICK)
    assert out.splitlines()[-1] == f"Train it: gcnsl train {' '.join(people)} --method {best} {sets} -o model"
    assert f"Picture: {plot}" in out
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_what_is_not_used_is_said_and_the_next_command_reads_the_same_edges(gcnsl, weighted) -> None:
    few = ("--models", "mlp,gcn", "--set", "epochs=3", "--runs", 2, "--directed", "--weight", "weight")
    code, out, err = gcnsl("compare", *weighted, *few)
    note = "Note: mlp does not use the edges' directions and weights; gcn does not use the edges' directions\n"
    assert (code, err) == (0, note)
    assert f"gcnsl train {' '.join(weighted)} --weight weight --directed --method" in out.splitlines()[-1]


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
    assert set(methods) == {"gcn-sl-cc", "gcn-sl-av"}
    for method in methods.values():
        assert len(method["accuracy"]) == 3
        assert method["options"]["epochs"] == 12
    assert methods["gcn-sl-cc"]["options"]["epsilon"] == 0.5
    assert methods["gcn-sl-av"]["options"]["epsilon"] != 0.5
    (difference,) = answer["differences"]
    assert difference["better"] == answer["methods"][0]["name"]
    assert 0 <= difference["p"] <= 1


def test_one_run_of_one_method(gcnsl, people) -> None:
    few = ("--set", "epochs=3", "--set", "mixhop.powers=[0,2]")
    out = gcnsl("compare", *people, "--models", "mixhop", *few, "--runs", 1, "--json")[1]
    answer = json.loads(out)
    assert answer["methods"][0]["options"]["powers"] == [0, 2]
    assert answer["methods"][0]["std"] is None
    assert answer["differences"] == []


def test_a_split_of_ones_own_is_one_run(gcnsl, people, frames, tmp_path) -> None:
    part = [("train", "val", "test")[i % 3] if i >= 10 else "" for i in range(90)]
    frames[0].assign(split=part).to_csv(tmp_path / "nodes.csv", index=False)
    answer = json.loads(gcnsl("compare", *people, *BOTH, *QUICK, "--json")[1])
    assert [len(method["accuracy"]) for method in answer["methods"]] == [1, 1]
    code, _, err = gcnsl("compare", *people, *BOTH, *QUICK, "--runs", 2)
    assert code == cli.BAD_INPUT
    assert "--runs 2 must be from 1 to 1" in err


@pytest.mark.parametrize("as_json", [False, True])
def test_ctrl_c_shows_what_is_finished(gcnsl, people, monkeypatch, as_json) -> None:
    begun = []

    @contextmanager
    def runs_shown(total, *, quiet):
        def begin(name, run) -> None:
            begun.append((name, run))
            if len(begun) == 4:
                os.kill(os.getpid(), signal.SIGINT)

        yield begin, lambda epoch: None

    monkeypatch.setattr("gcnsl.cli.compare.runs_shown", runs_shown)
    code, out, err = gcnsl("compare", *people, *BOTH, *QUICK, *(["--json"] if as_json else []))
    assert code == cli.INTERRUPTED
    assert err == "Interrupted: after 3 of 20 runs\n"
    if as_json:
        answer = json.loads(out)
        assert answer["complete"] is False
        assert sorted(len(method["accuracy"]) for method in answer["methods"]) == [1, 2]
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
        (["--models", "gcm"], "--models gcm must be one of "),
        (["--models", ","], "--models ',' names none"),
        (["--set", "epsilom=0.5"], "epsilom: gcn-sl-cc has no such option"),
        (["--models", "mixhop", "--set", "powers=0-2"], "--set powers=0-2: it must be a list of whole numbers"),
        (["--set", "mlp2.lr=0.5"], "--set mlp2.lr: 'mlp2' is not compared; the models are gcn-sl-cc"),
        (["--runs", "11", "--split", "geom-gcn", "--plot", "a.gif"], "--plot a.gif must end in one of"),
    ],
)
def test_users_errors_are_one_line(gcnsl, people, arguments, message) -> None:
    models = [] if "--models" in arguments else ["--models", "gcn-sl"]
    code, out, err = gcnsl("compare", *people, *models, *arguments)
    assert (code, out) == (cli.BAD_INPUT, "")
    assert message in err
    assert err.count("\n") == 1
