"""A run's record names all that decides it, and whatever a file holds, there is a result or a reason against it."""

import json

import pandas as pd
import pytest

from gcnsl.experiments.records import by_error, by_spec, read_results, results_of
from gcnsl.methods import METHODS
from gcnsl.runs.results import ResultsWarning, append_records

from .cases import result, spec


def test_runs_of_earlier_versions_are_those_of_today() -> None:
    record = result().to_record() | {"options": {"lr": 0.01}}
    (read,) = results_of({name: value for name, value in record.items() if name not in ("directed", "metric")})
    assert dict(read.spec.options) == METHODS["gcn-sl-cc"].options() | {"lr": 0.01, "standardize": "auto"}
    assert (read.spec.directed, read.spec.metric) == (False, "accuracy")
    (mixhop,) = results_of(record | {"method": "mixhop", "options": {"power_channels": 21}})
    assert dict(mixhop.spec.options)["hidden_channels"] == 21
    assert "power_channels" not in dict(mixhop.spec.options)
    (features,) = results_of(record | {"method": "sc", "task": "features"})
    assert features.spec.options == (("lr", 0.01),)


def test_results_come_back_as_they_went_in(tmp_path) -> None:
    many = [result(run, history={"val": [0.1, 0.2]}, finished="2021-05-28T00:00:00+00:00") for run in range(3)]
    many += [result(3, status="failed"), result(4, of=spec(4, directed=True, metric="roc-auc"))]
    file = tmp_path / "results.jsonl"
    append_records(file, *(each.to_record() for each in reversed(many)))
    assert sorted(read_results(file), key=lambda each: each.spec.run) == many
    assert list(pd.read_json(file, lines=True)["run"]) == [4, 3, 2, 1, 0]
    assert read_results(tmp_path / "absent.jsonl") == []


def test_a_line_may_hold_several_runs() -> None:
    first, second = (result(run).to_record() for run in range(2))
    own = ("run", "status", "metrics", "seconds", "split_hash")
    common = {name: value for name, value in first.items() if name not in own}
    runs = [{name: record[name] for name in own} for record in (first, second)]
    assert results_of(common | {"runs": runs}) == [result(0), result(1)]


@pytest.mark.parametrize("order", [1, -1])
def test_a_failure_never_hides_a_good_result_of_the_same_run(order) -> None:
    both = [result(status="failed"), result(test=0.7)]
    assert [found.metrics for found in by_spec(both[::order]).values()] == [{"test": 0.7}]
    assert list(by_error(both).values()) == [["gcn-sl-cc on texas (random, run 0)"]]


DAMAGE = [
    {"options": {"lr": {}}},
    {"task": "dance"},
    {"colour": "red"},
    {"status": "fine"},
    {"runs": 7},
    {"runs": [7]},
]


@pytest.mark.parametrize("damage", DAMAGE, ids=str)
def test_a_damaged_record_counts_as_not_made_and_can_be_made_again(tmp_path, damage) -> None:
    file = tmp_path / "results.jsonl"
    append_records(file, result(0).to_record())
    line = json.dumps(result(1).to_record() | damage)  # which may have values that we never write
    file.write_text(f"{file.read_text()}{line}\n", encoding="utf-8")
    append_records(file, result(1, test=0.3).to_record())
    with pytest.warns(ResultsWarning, match=r"results\.jsonl: 1 damaged lines count as not there, the first is line 2"):
        assert read_results(file) == [result(0), result(1, test=0.3)]
