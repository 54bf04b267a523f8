import math
from dataclasses import replace
from itertools import product

import optuna
import pandas as pd
import pytest
import torch

from gcnsl import InputError, from_tables, synthetic
from gcnsl.datasets import with_random_split
from gcnsl.errors import TrainingDiverged
from gcnsl.evaluation import hyperparameter_search as module
from gcnsl.evaluation.hyperparameter_search import Search, search
from gcnsl.methods import METHODS, find_method
from gcnsl.methods.registry import space_of
from gcnsl.workers.processes import Processes

from .fake_methods import fake_methods

REAL = dict(METHODS)
START = {"lr": 0.011, "epsilon": 0.8, "rounds": 1, "n_components": 35}
DATA = with_random_split(synthetic(n=60, h=0.3, classes=3, degree=4, features=12, seed=0, signal=0.9), runs=3)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """All methods train in no time."""
    for name, method in fake_methods().items():
        monkeypatch.setitem(METHODS, name, method.with_options(epochs=4))


@pytest.fixture
def wanted(tmp_path):
    return Search(
        find_method("gcn-sl"), DATA, "tiny", runs=2, seed=0, device="cpu", storage=tmp_path / "folder" / "search.db"
    )


def values(wanted: Search) -> list:
    return [(trial.state.name, trial.value, trial.params) for trial in wanted.study().trials]


def test_a_grid_is_tried_in_full_and_no_further(wanted, monkeypatch) -> None:
    seen = []

    def accuracy(prepared, **_):
        method = prepared.method
        seen.append((method.config.dropout, method.training.weight_decay, method.config.relu))
        return 0.5 + 0.1 * (seen[-1] == (0.0, 5e-4, False))

    monkeypatch.setattr(module, "_validation_gain", accuracy)
    wanted = replace(wanted, method=REAL["h2gcn-1"].with_options(hidden_channels=7), grid=True, runs=1)
    search(wanted, trials=3)  # and then it was killed
    found = search(wanted, trials=100)
    assert found.options == {"dropout": 0.0, "weight_decay": 5e-4, "relu": False}
    assert sorted(seen) == sorted(product((0.0, 0.5), (1e-5, 5e-4), (False, True)))
    assert search(wanted, trials=100) == found
    assert len(seen) == 8


def test_few_combinations_are_all_tried_and_each_once(wanted, monkeypatch) -> None:
    seen = []

    def accuracy(prepared, **_):
        seen.append((prepared.method.config.relu, prepared.method.config.dropout))
        return 0.5 + 0.1 * (seen[-1] == (False, 0.3))

    monkeypatch.setattr(module, "_validation_gain", accuracy)
    others = space_of("gcn").keys() - {"relu", "dropout"}
    wanted = replace(wanted, method=METHODS["gcn"], fixed=others, runs=1)
    assert wanted.combinations == 18
    search(wanted, trials=1)  # and then it was killed
    found = search(wanted, trials=30)
    assert (found.options, found.trials) == ({"relu": False, "dropout": 0.3}, 18)
    assert sorted(seen) == [(relu, tenths / 10) for relu in (False, True) for tenths in range(9)]


def test_a_method_without_options_is_tried_once(wanted) -> None:
    wanted = replace(wanted, method=METHODS["gcn"], fixed=space_of("gcn").keys())
    found = search(wanted, trials=16)
    assert (found.options, found.trials, found.start) == ({}, 1, found.score)


def test_what_is_not_searched_for_stays_as_at_the_start(wanted, monkeypatch) -> None:
    seen = []

    def accuracy(prepared, **_):
        method = prepared.method
        seen.append((method.config.hidden_channels, method.config.heads, method.training.patience))
        return 0.5

    monkeypatch.setattr(module, "_validation_gain", accuracy)
    monkeypatch.setitem(METHODS, "gat", REAL["gat"])
    search(replace(wanted, method=REAL["gat"].with_options(hidden_channels=7, heads=3, patience=3)), trials=1)
    assert set(seen) == {(7, 3, 3)}


def test_epochs_are_told_with_the_run_they_belong_to(wanted) -> None:
    told = []
    search(wanted, trials=1, on_epoch=lambda run, epoch: told.append((run, epoch.number)))
    assert told == [(run, number) for run in range(2) for number in range(1, 5)]


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
    search(replace(wanted, method=wanted.method.with_options(**START)), trials=2)
    tried = [trial.user_attrs["options"] for trial in wanted.study().trials]
    assert tried[0].items() >= START.items()
    defaults = METHODS["gcn-sl-cc"].options()
    assert tried[1] == {name: defaults[name] for name in space_of("gcn-sl-cc")}


def test_candidates_are_tried_next(wanted) -> None:
    start = wanted.method.with_options(**START)
    search(replace(wanted, method=start, candidates=[{"epsilon": 0.77}, {"rounds": 3}]), trials=3)
    tried = [trial.user_attrs["options"] for trial in wanted.study().trials[:3]]
    assert tried[1] == tried[0] | {"epsilon": 0.77}
    assert tried[2] == tried[0] | {"rounds": 3}


def test_the_same_seed_makes_the_same_search(wanted, tmp_path) -> None:
    other = replace(wanted, storage=tmp_path / "other.db")
    search(wanted, trials=4)
    search(other, trials=4)
    assert values(wanted) == values(other)


def test_a_first_choice_that_was_killed_is_tried_again(wanted, monkeypatch) -> None:
    def killed(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(module, "_validation_gain", killed)
        with pytest.raises(KeyboardInterrupt):
            search(replace(wanted, method=wanted.method.with_options(lr=0.011)), trials=1)
    search(replace(wanted, method=wanted.method.with_options(lr=0.011)), trials=2)
    done = [trial.user_attrs["options"]["lr"] for trial in wanted.study().trials if trial.state.name == "COMPLETE"]
    assert 0.011 in done


def test_a_trial_that_needs_too_much_memory_does_not_end_the_search(wanted, monkeypatch) -> None:
    calls = []

    def accuracy(*_, **__):
        calls.append(1)
        if len(calls) == 1:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return 0.5

    monkeypatch.setattr(module, "_validation_gain", accuracy)
    assert search(replace(wanted, runs=1), trials=2).trials == 2
    assert len(calls) == 3


def test_nothing_fits_into_memory(wanted, monkeypatch) -> None:
    def accuracy(*_, **__):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(module, "_validation_gain", accuracy)
    with pytest.raises(InputError, match=r"no trial was finished: allow more time than seconds\(None\), or a device"):
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
    names = [other.study().study_name for other in others]
    assert len(set(names)) == len(others)
    searched = replace(wanted, method=method.with_options(lr=0.123), candidates=[{"lr": 0.1}], data=DATA.clone())
    assert searched.study().study_name == names[0], "where it begins does not matter"
    monkeypatch.setattr("gcnsl.identity.__version__", "9.9")
    assert wanted.study().study_name not in names


def test_trials_with_another_table_do_not_count(tmp_path) -> None:
    colours, edges = ["red", "blue", "rare", "red", "blue", "red"] * 10, [(i, (i + 7) % 60) for i in range(60)]
    nodes = pd.DataFrame({"id": range(60), "colour": colours, "size": range(60), "label": ["a", "b", "c"] * 20})
    other = nodes.assign(colour=["red" if colour == "rare" else colour for colour in colours])

    def found(nodes, **options):
        data = with_random_split(from_tables(nodes, pd.DataFrame(edges, columns=["source", "target"]), **options))
        wanted = Search(find_method("mlp"), data, "own", runs=1, device="cpu", storage=tmp_path / "search.db")
        return search(wanted, trials=2), len(wanted.study().trials)

    first = found(nodes)
    assert first[1] == 2
    assert [found(nodes, drop=["colour"])[1], found(nodes, drop=["size"])[1], found(other)[1]] == [2, 2, 2]
    assert found(nodes) == first, "and those of this one are still there"
    assert len(optuna.study.get_all_study_names(f"sqlite:///{tmp_path}/search.db")) == 4


def test_test_nodes_are_never_looked_at(wanted, tmp_path) -> None:
    data, test = DATA.clone(), DATA.test_mask[:, 0]
    data.y = DATA.y.clone()
    data.y[test] = (data.y[test] + 1) % 3
    data.test_mask = torch.zeros_like(DATA.test_mask)
    data.test_mask[0] = True
    wanted = replace(wanted, runs=1)
    blind = replace(wanted, data=data, storage=tmp_path / "blind.db")
    assert search(wanted, trials=3) == search(blind, trials=3)


def test_a_trial_that_falls_behind_is_given_up(wanted, monkeypatch) -> None:
    seen = []

    def accuracy(prepared, *, run, **_):
        seen.append(run)
        return 0.9 if len(seen) <= 10 else 0.1

    monkeypatch.setattr(module, "_validation_gain", accuracy)
    found = search(wanted, trials=7)
    assert found.trials == 7
    assert [state for state, *_ in values(wanted)] == ["COMPLETE"] * 5 + ["PRUNED"] * 2
    assert len(seen) == 5 * 2 + 2
    assert found.score == 0.9


def test_divergence_is_no_accuracy(wanted, monkeypatch) -> None:
    def diverge(*_, **__):
        raise TrainingDiverged("nan")

    monkeypatch.setattr(module, "run_split", diverge)
    assert search(wanted, trials=2).score == 0


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


def test_of_a_start_without_a_complete_trial_nothing_is_known(wanted, monkeypatch) -> None:
    monkeypatch.setattr(module, "_validation_gain", lambda prepared, **_: 0.5)
    inside, outside = (REAL["h2gcn-1"].with_options(weight_decay=decay) for decay in (1e-5, 0.1))
    assert search(replace(wanted, method=inside, grid=True, runs=1), trials=100).start == 0.5
    assert search(replace(wanted, method=outside, grid=True, runs=1), trials=100).start is None


def test_fewer_splits_than_runs_are_used_again_with_other_seeds(wanted, monkeypatch) -> None:
    seen = []
    monkeypatch.setattr(module, "_validation_gain", lambda prepared, *, run, seed, **_: seen.append((run, seed)) or 0.5)
    search(replace(wanted, runs=5, seed=2), trials=1)
    assert seen == [(0, 2), (1, 3), (2, 4), (0, 5), (1, 6)]


def test_several_processes_share_a_search(tmp_path) -> None:
    data = with_random_split(synthetic(n=30, h=0.3, classes=3, degree=4, features=12, seed=0, signal=0.9), runs=1)
    wanted = Search(
        REAL["gcn-sl-cc"].with_options(epochs=4), data, "tiny", runs=1, device="cpu", storage=tmp_path / "search.db"
    )
    with Processes(2) as executor:
        found = search(wanted, trials=3, executor=executor)
    assert found.trials == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"runs": 0}, r"runs\(0\) must be >= 1"),
        ({"metric": "auc"}, r"metric\('auc'\) must be one of accuracy"),
        ({"device": "gpu"}, r"device\('gpu'\)"),
        ({"method": REAL["gat"], "grid": True}, r"method\('gat'\) has no grid"),
    ],
)
def test_bad_arguments(wanted, options, message) -> None:
    with pytest.raises(InputError, match=message):
        replace(wanted, **options)


def test_no_time(wanted) -> None:
    with pytest.raises(InputError, match=r"seconds\(0\) must be > 0"):
        search(wanted, trials=1, seconds=0)


def test_no_trials(wanted) -> None:
    with pytest.raises(InputError, match=r"trials\(0\) must be >= 1"):
        search(wanted, trials=0)


def test_another_metric_decides_in_training_and_is_not_searched_for(wanted) -> None:
    method = find_method("gcn-sl-plus").with_options(monitor="macro-f1", epochs=4)
    assert "monitor" in space_of("gcn-sl-plus")
    assert "monitor" not in replace(wanted, method=method, metric="macro-f1").space


def test_a_value_that_can_not_be_suggested_is_left_to_the_sampler(wanted) -> None:
    method = find_method("gcn-sl-plus").with_options(hidden_channels=100, epochs=4)
    found = search(replace(wanted, method=method), trials=1)
    assert found.options["hidden_channels"] in space_of("gcn-sl-plus")["hidden_channels"].values
