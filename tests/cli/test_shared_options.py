import json

import pytest

from gcnsl import InputError, cli
from gcnsl.cli.shared_options import read_options
from gcnsl.runs import cluster

from ..auto.cases import make_quick
from ..runs.fake_executor import FakeExecutor

FEW = ("--set", "epochs=3", "--json")


@pytest.fixture
def opened(monkeypatch) -> list[str]:
    """The addresses of the clusters that were asked for, which have no workers but work."""
    addresses = []

    def open_cluster(address: str) -> FakeExecutor:
        addresses.append(address)
        return FakeExecutor()

    monkeypatch.setattr(cluster, "Cluster", open_cluster)
    return addresses


def test_compare(gcnsl, people, opened) -> None:
    command = ("compare", *people, "--models", "mlp,gcn", "--runs", 3, *FEW)
    here, there = (json.loads(gcnsl(*command, *where)[1]) for where in ((), ("--cluster", "tcp://a:1")))
    scores = [{method["name"]: method["metrics"] for method in answer["methods"]} for answer in (here, there)]
    assert scores[0] == scores[1]
    assert opened == ["tcp://a:1"]


def test_train(gcnsl, people, opened, tmp_path, monkeypatch) -> None:
    make_quick(monkeypatch)
    command = ("train", *people, "--quality", "fast", "--minutes", 5, "--json", "-o")
    here = json.loads(gcnsl(*command, tmp_path / "here")[1])
    there = json.loads(gcnsl(*command, tmp_path / "there", "--cluster", "tcp://a:1")[1])
    scores = [{row["model"]: row["validation"] for row in answer["leaderboard"]} for answer in (here, there)]
    assert scores[0] == scores[1]
    assert opened == ["tcp://a:1"]
    assert not (tmp_path / "there.checkpoint").exists()
    code, _, err = gcnsl("train", *people, "--method", "mlp", "--cluster", "tcp://a:1")
    assert code == cli.BAD_INPUT
    assert "--cluster is for auto: leave out --method, or leave out --cluster" in err


def test_options_are_keys_and_values_as_toml_writes_them() -> None:
    assert read_options(None) == {}
    given = ["lr=0.1", " rounds = 2 ", "merge=average", "self_loops=true", "powers=[0, 2]", "a=b=c"]
    assert read_options(given) == {
        "lr": 0.1,
        "rounds": 2,
        "merge": "average",
        "self_loops": True,
        "powers": [0, 2],
        "a": "b=c",
    }
    for wrong in ("lr", "=0.1", ""):
        with pytest.raises(InputError, match="is not a setting: write KEY=VALUE"):
            read_options([wrong])
