import math
from dataclasses import replace

import pytest
import torch

from gcnsl import InputError, synthetic
from gcnsl.auto import search as module
from gcnsl.auto.search import Search, search
from gcnsl.datasets import with_random_split
from gcnsl.methods import METHODS, find_method
from gcnsl.methods.registry import space_of

from ..evaluation.fake_methods import fake
from ..runs.fake_executor import FakeExecutor

START = {"lr": 0.011, "epsilon": 0.8, "rounds": 1, "n_components": 35}
DATA = with_random_split(synthetic(n=60, h=0.3, classes=3, degree=4, features=12, seed=0, signal=0.9), runs=3)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """All methods train in no time; GCN-SL is the real one."""
    for name, real in METHODS.items():
        method = real if name in ("gcn-sl-cc", "gcn-sl-av") else fake(name)
        monkeypatch.setitem(METHODS, name, method.with_options(epochs=4))


@pytest.fixture
def wanted(tmp_path):
    return Search(
        find_method("gcn-sl"), DATA, runs=2, seed=0, device="cpu", storage=tmp_path / "folder" / "search.jsonl"
    )


def values(wanted: Search) -> list:
    return [(trial.is_complete, trial.gains, trial.options) for trial in wanted.finished()]


def test_few_combinations_are_all_tried_and_each_once(wanted, monkeypatch) -> None:
    seen = []

    def accuracy(_, done):
        seen.append((done.job.method.config.relu, done.job.method.config.dropout))
        return 0.5 + 0.1 * (seen[-1] == (False, 0.3))

    monkeypatch.setattr(module, "_gain", accuracy)
    others = space_of("gcn").keys() - {"relu", "dropout"}
    wanted = replace(wanted, method=METHODS["gcn"], fixed=others, runs=1)
    assert wanted.combinations == 18
    search(wanted, trials=1)  # and then it was killed
    found = search(wanted, trials=30)
    assert (found.options, found.trials) == ({"relu": False, "dropout": 0.3}, 18)
    assert sorted(seen) == [(relu, tenths / 10) for relu in (False, True) for tenths in range(9)]


def test_no_trial_is_begun_when_the_time_is_up(wanted) -> None:
    assert search(wanted, trials=1000, seconds=0.2).trials < 50


def test_a_search_finds_something_and_goes_on_where_it_was(wanted) -> None:
    told = []
    first = search(wanted, trials=3, on_trial=lambda *news: told.append(news))
    assert first.trials == 3
    assert (told[0], told[-1]) == ((0, None), (3, first.score))
    assert first.options.keys() == space_of("gcn-sl-cc").keys()
    METHODS["gcn-sl-cc"].with_options(**first.options)
    before = values(wanted)
    assert search(wanted, trials=3) == first, "nothing is left to do"
    second = search(wanted, trials=6)
    assert second.trials == 6
    after = values(wanted)
    assert after[:3] == before
    assert len({str(sorted(params.items())) for _, _, params in after}) == 6, "a resumed search repeats nothing"
    assert second.score >= first.score


def test_the_start_and_the_defaults_are_tried_first(wanted) -> None:
    start = wanted.method.with_options(**START)
    search(replace(wanted, method=start), trials=2)
    tried = [trial.options for trial in wanted.finished()]
    assert tried[0].items() >= START.items()
    defaults = METHODS["gcn-sl-cc"].options()
    assert tried[1] == {name: defaults[name] for name in space_of("gcn-sl-cc")}


def test_the_same_seed_makes_the_same_search(wanted, tmp_path) -> None:
    other = replace(wanted, storage=tmp_path / "other.jsonl")
    search(wanted, trials=4)
    search(other, trials=4)
    assert values(wanted) == values(other)


def test_a_trial_that_needs_too_much_memory_does_not_end_the_search(wanted, monkeypatch) -> None:
    calls = []

    def accuracy(*_, **__):
        calls.append(1)
        if len(calls) == 1:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return 0.5

    monkeypatch.setattr(module, "_gain", accuracy)
    assert search(replace(wanted, runs=1), trials=2).trials == 2
    assert len(calls) == 3


def test_nothing_fits_into_memory(wanted, monkeypatch) -> None:
    def accuracy(*_, **__):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(module, "_gain", accuracy)
    with pytest.raises(InputError, match=r"no trial was finished \(not enough memory\): allow more time, or a device"):
        search(wanted, trials=2)


def changed(**attributes):
    data = DATA.clone()
    data.update(attributes)
    return data


def test_searches_with_other_data_splits_or_options_are_others(wanted, monkeypatch) -> None:
    method, x, y = wanted.method, DATA.x.clone(), DATA.y.roll(1)
    x[3, 4] += 1
    others = [
        wanted,
        replace(wanted, data=changed(x=x)),
        replace(wanted, data=changed(x=DATA.x[:, 1:])),
        replace(wanted, data=changed(feature_names=list("abcdefghijkl"))),
        replace(wanted, data=changed(y=y)),
        replace(wanted, data=changed(edge_index=DATA.edge_index[:, 1:])),
        replace(wanted, data=changed(train_mask=DATA.val_mask, val_mask=DATA.train_mask)),
        replace(wanted, runs=1),
        replace(wanted, seed=1),
        replace(wanted, metric="macro-f1"),
        replace(wanted, method=method.with_options(monitor="accuracy")),
        replace(wanted, method=method.with_options(class_weight="a=2")),
        replace(wanted, method=method.with_options(patience=7)),
        replace(wanted, fixed=["lr"]),
        replace(wanted, method=METHODS["gcn"]),
    ]
    names = [other.identity for other in others]
    assert len(set(names)) == len(others)
    searched = replace(wanted, method=method.with_options(lr=0.123), data=DATA.clone())
    assert searched.identity == names[0], "where it begins does not matter"
    monkeypatch.setattr("gcnsl.runs.jobs.__version__", "9.9")
    assert replace(wanted).identity not in names


def test_test_nodes_are_never_looked_at(wanted, tmp_path) -> None:
    data, test = DATA.clone(), DATA.test_mask[:, 0]
    data.y = DATA.y.clone()
    data.y[test] = (data.y[test] + 1) % 3
    data.test_mask = torch.zeros_like(DATA.test_mask)
    data.test_mask[0] = True
    wanted = replace(wanted, runs=1)
    blind = replace(wanted, data=data, storage=tmp_path / "blind.jsonl")
    assert search(wanted, trials=3) == search(blind, trials=3)


def test_a_trial_that_falls_behind_is_given_up(wanted, monkeypatch) -> None:
    seen = []

    def accuracy(_, done):
        seen.append(done.job.run)
        return 0.9 if len(seen) <= 10 else 0.1

    monkeypatch.setattr(module, "_gain", accuracy)
    found = search(wanted, trials=7)
    assert found.trials == 7
    assert [is_complete for is_complete, *_ in values(wanted)] == [True] * 5 + [False] * 2
    assert len(seen) == 5 * 2 + 2
    assert found.score == 0.9


@pytest.mark.parametrize(("metric", "sign"), [("macro-f1", 1), ("log-loss", -1)])
def test_any_metric_can_judge(wanted, monkeypatch, metric, sign) -> None:
    wanted, seen = replace(wanted, metric=metric, runs=1), []

    def measured(self, mask):
        seen.append(0.3 + 0.1 * len(seen))
        return {metric: seen[-1]}

    monkeypatch.setattr("gcnsl.methods.Fitted.measure", measured)
    told = []
    found = search(wanted, trials=3, on_trial=lambda *news: told.append(news))
    assert found.score == pytest.approx(max(seen) if sign > 0 else min(seen))
    assert told[-1] == (3, found.score)
    assert found.start == pytest.approx(seen[0]), "the defaults are tried first"


@pytest.mark.parametrize("metric", ["roc-auc", "log-loss"])
def test_what_is_undefined_is_never_best(wanted, monkeypatch, metric) -> None:
    values = iter([math.nan, 0.4, math.nan])
    monkeypatch.setattr("gcnsl.methods.Fitted.measure", lambda self, mask: {metric: next(values)})
    assert search(replace(wanted, metric=metric, runs=1), trials=3).score == 0.4


def test_fewer_splits_than_runs_are_used_again_with_other_seeds(wanted, monkeypatch) -> None:
    seen = []
    monkeypatch.setattr(module, "_gain", lambda _, done: seen.append((done.job.split, done.job.seed)) or 0.5)
    search(replace(wanted, runs=5, seed=2), trials=1)
    assert seen == [(0, 2), (1, 3), (2, 4), (0, 5), (1, 6)]


@pytest.mark.parametrize("slots", [1, 3])
def test_others_can_do_the_work(wanted, slots) -> None:
    executor = FakeExecutor(slots=slots, lost={("1", 0)})
    found = search(wanted, trials=6, executor=executor)
    assert found.trials == len(wanted.finished()) == 6
    assert executor.most_under_way == slots
    assert executor.calls_sent == 1, "the graph is not sent with every run"
    assert {len(trial.gains) for trial in wanted.finished() if trial.is_complete} == {2}


def test_the_trials_of_an_earlier_version_are_refused(wanted, tmp_path) -> None:
    (tmp_path / "search.db").write_bytes(b"SQLite format 3\0 and more")
    with pytest.raises(InputError, match=r"search\.db is a store of gcnsl 0\.2\.0: give another file"):
        search(replace(wanted, storage=tmp_path / "search.db"), trials=1)
