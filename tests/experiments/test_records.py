"""A run's record names all that decides it, and whatever a file holds, there is a result or a reason against it."""

import json
from pathlib import Path
from random import Random

import pandas as pd
import pytest

from gcnsl import InputError
from gcnsl.errors import LONGEST
from gcnsl.experiments.plan import Scope
from gcnsl.experiments.records import RunSpec, as_options, by_error, by_key, read_results, result_file, results_of
from gcnsl.methods import METHODS
from gcnsl.runs.results import ResultsWarning, to_json

from ..damage import CASES, damaged, damaged_bytes
from .cases import result, spec
from .fake_methods import fake_methods
from .plausible import plausible_results


def test_a_key_names_the_whole_specification() -> None:
    keys = {
        spec(0).key,
        spec(1).key,
        spec(seed=1).key,
        spec(method="mlp").key,
        spec(dataset="cora").key,
        spec(split="geom-gcn").key,
        spec(curves=True).key,
        spec(task="features").key,
        spec(task="search").key,
        spec(directed=True).key,
        spec(metric="roc-auc").key,
        spec(options=as_options({"lr": 0.02, "plateau_factor": None, "rounds": 1})).key,
        spec(options=as_options({"lr": 0.01})).key,
    }
    assert len(keys) == 13
    assert spec(options=as_options({"rounds": 1, "plateau_factor": None, "lr": 0.01})).key == spec().key
    several = spec(options=as_options({"powers": (0, 1, 2)}))
    for one in (spec(), several, spec(directed=True, metric="roc-auc")):
        assert RunSpec.from_dict(json.loads(json.dumps(one.to_dict()))) == one


def test_keys_do_not_change_between_versions() -> None:
    assert spec().key == "df25f58b757f0cd10d378cd76146f362"
    for name, default, other in (
        ("class_weight", None, "balanced"),
        ("use_spectral", True, False),
        ("residual", False, True),
        ("norm", "none", "batch"),
        ("drop_features", True, False),
    ):
        assert spec().with_defaults({name: default}).key == spec().key
        assert spec().with_defaults({name: other}).key != spec().key


def test_a_renamed_option_changes_no_key() -> None:
    earlier = spec(method="mixhop", options=as_options({"hidden_channels": 64, "lr": 0.5}))
    later = spec(method="mixhop", options=as_options({"power_channels": 64, "lr": 0.5}))
    assert RunSpec.from_dict(earlier.to_dict()) == RunSpec.from_dict(later.to_dict()) == later
    assert later.key == earlier.key
    other = spec(method="gcn", options=as_options({"hidden_channels": 64}))
    assert RunSpec.from_dict(other.to_dict()) == other


def test_results_come_back_as_they_went_in(tmp_path) -> None:
    many = [result(run, history={"val": [0.1, 0.2]}, finished="2021-05-28T00:00:00+00:00") for run in range(3)]
    many += [result(3, status="failed"), result(4, of=spec(4, directed=True, metric="roc-auc"))]
    file = result_file(tmp_path / "results.jsonl")
    file.append(*(each.to_record() for each in reversed(many)))
    assert sorted(read_results(file.path), key=lambda each: each.spec.run) == many
    assert list(pd.read_json(file.path, lines=True)["run"]) == [4, 3, 2, 1, 0]
    with pytest.raises(InputError, match="is no file: `gcnsl reproduce` makes one"):
        read_results(tmp_path / "absent.jsonl")


def test_a_line_may_hold_several_runs() -> None:
    first, second = (result(run).to_record() for run in range(2))
    own = ("run", "status", "metrics", "seconds", "split_hash")
    common = {name: value for name, value in first.items() if name not in own}
    runs = [{name: record[name] for name in own} for record in (first, second)]
    assert results_of(common | {"runs": runs}) == [result(0), result(1)]


@pytest.mark.parametrize("order", [1, -1])
def test_a_failure_never_hides_a_good_result_of_the_same_run(order) -> None:
    old, new = spec(options=as_options({"lr": 0.02})), spec(options=as_options(METHODS["gcn-sl-cc"].options()))
    both = [result(of=old, status="failed"), result(of=new, test=0.7)]
    (found,) = by_key(both[::order]).values()
    assert found.metrics == {"test": 0.7}
    assert list(by_error(both).values()) == [["gcn-sl-cc on texas (random, run 0)"]]


def test_a_run_that_lacks_a_newer_option_counts_as_one_with_the_default_that_it_had_then(monkeypatch) -> None:
    old, new = spec(options=as_options({"lr": 0.02})), spec(options=as_options(METHODS["gcn-sl-cc"].options()))
    assert old.key != new.key
    assert list(by_key([result(of=old)])) == [new.key]
    monkeypatch.setitem(METHODS, "gcn-sl-cc", METHODS["gcn-sl-cc"].with_options(standardize="never"))
    assert list(by_key([result(of=old)])) == [new.key]
    assert new.key != spec(options=as_options(METHODS["gcn-sl-cc"].options())).key


DAMAGE = [
    {"metrics": None},
    {"metrics": [1]},
    {"metrics": {"test": "high"}},
    {"metrics": {"options": []}},
    {"metrics": {"test": 0.5, "val": None}},
    {"metrics": {"test": 0.5, "train_nodes": 0, "test_nodes": 3}},
    {"metrics": {"test": 0.5, "train_nodes": 3}},
    {"options": {"lr": 1e999}},
    {"options": {"lr": {}}},
    {"task": "search"},
    {"task": "dance"},
    {"run": 10**9},
    {"run": "0"},
    {"colour": "red"},
    {"status": "fine"},
    {"device": 1},
    {"seconds": "long"},
    {"seconds": 10**400},
    {"history": {"val": [None]}},
    {"history": {"val": 1}},
    {"runs": 7},
    {"runs": [7]},
]


@pytest.mark.parametrize("damage", DAMAGE, ids=str)
def test_a_damaged_record_counts_as_not_made_and_can_be_made_again(tmp_path, damage) -> None:
    file = result_file(tmp_path / "results.jsonl")
    file.append(result(0).to_record())
    line = json.dumps(result(1).to_record() | damage)  # which may have values that we never write
    file.path.write_text(f"{file.path.read_text()}{line}\n", encoding="utf-8")
    file.append(result(1, test=0.3).to_record())
    with pytest.warns(ResultsWarning, match=r"results\.jsonl: 1 damaged lines count as not there, the first is line 2"):
        assert read_results(file.path) == [result(0), result(1, test=0.3)]


@pytest.fixture(scope="module")
def lines(tmp_path_factory) -> list[str]:
    """A result of each method and each task."""
    with pytest.MonkeyPatch.context() as patch:
        for name, method in fake_methods().items():
            patch.setitem(METHODS, name, method)
        scope = Scope(settings=tmp_path_factory.mktemp("settings"), runs=1, datasets=["texas"])
        results = plausible_results(scope, names=("accuracy", "spectral", "beyond"))
    some = {(result.spec.task, result.spec.method): result for result in results}
    return [to_json(result.to_record()) for result in some.values()]


@pytest.mark.parametrize("case", range(CASES))
@pytest.mark.filterwarnings("always::gcnsl.runs.results.ResultsWarning")
@pytest.mark.usefixtures("all_methods")
def test_damaged_files_are_shown_or_refused_in_one_line(lines, tmp_path, gcnsl, monkeypatch, case) -> None:
    monkeypatch.setattr("gcnsl.experiments.run.execute", lambda *_, **__: None)
    random, path = Random(case), Path(tmp_path, "results.jsonl")
    changed, content = list(lines), "\n".join(lines).encode()
    for place in random.sample(range(len(lines)), 3):
        changed[place] = json.dumps(damaged(json.loads(lines[place]), random))
    part = ("--methods", "mlp", "--datasets", "texas", "--runs", 1)
    for damage in ("\n".join(changed).encode(), damaged_bytes(content, random)):
        path.write_bytes(damage)
        for command in (
            ("report", "-o", tmp_path / "page.html", "--markdown", tmp_path / "page.md"),
            ("reproduce", "accuracy", *part),
        ):
            code, _, err = gcnsl(*command, "--store", path)
            assert code in (0, 1, 2), err
            assert all(len(line) < LONGEST + 20 for line in err.splitlines()), err
