import copy
import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from gcnsl import synthetic
from gcnsl.datasets import with_random_split
from gcnsl.errors import GcnslError, InputError, Interrupted, TrainingDiverged
from gcnsl.graph import from_tables
from gcnsl.methods import METHODS
from gcnsl.runs import jobs
from gcnsl.runs.jobs import Failed, Finished, Job, Preparations, Trainer

from ..evaluation.fake_methods import FakeConfig, fake

DATA = with_random_split(synthetic(n=60, h=0.8, classes=3, degree=4, features=12, seed=0, signal=0.9), runs=2)
JOB = Job(name="mlp", run=0, method=fake("mlp"), split=0, seed=3)


def scores(done: Finished) -> tuple[dict[str, float], int]:
    return done.fitted.measure(done.masks["test"]), len(done.fitted.history)


def test_a_copy_reaches_the_same_and_prepares_its_own_inputs(monkeypatch) -> None:
    prepared, inputs = [], FakeConfig.inputs

    def counted(self, graph, precomputed, *, seed):
        prepared.append(seed)
        return inputs(self, graph, precomputed, seed=seed)

    monkeypatch.setattr(FakeConfig, "inputs", counted)
    trainer = Trainer(DATA, scores, seed=3, device="cpu")
    all_jobs = [replace(JOB, run=run, split=run % 2, seed=3 + run) for run in range(3)]
    here = [trainer(job) for job in all_jobs]
    assert prepared == [3], "once for all runs"
    there = list(map(pickle.loads(pickle.dumps(trainer)), all_jobs))
    assert prepared == [3, 3]
    assert here == there
    assert here[0][1] == 3
    assert here[2] != here[0], "the same split with another seed"


@pytest.mark.parametrize(("keep", "times"), [(1, 4), (2, 2)])
def test_as_many_inputs_are_kept_as_wanted_and_none_is_sent(keep, times, monkeypatch) -> None:
    prepared, prepare = [], jobs.prepare
    monkeypatch.setattr(jobs, "prepare", lambda *a, **options: prepared.append(1) or prepare(*a, **options))
    trainer = Trainer(DATA, scores, seed=0, device="cpu", keep=keep)
    before = len(pickle.dumps(trainer))
    for name in ("a", "b", "a", "b"):
        trainer(replace(JOB, name=name))
    assert len(prepared) == times
    assert len(pickle.dumps(trainer)) == before


def test_the_time_bounds_training() -> None:
    trainer = Trainer(DATA, lambda done: done.fitted.history, seed=0, device="cpu")
    assert len(trainer(replace(JOB, seconds=0.0))) == 1
    assert trainer(replace(JOB, seconds=0.0)).stopped == "minutes"


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (TrainingDiverged("loss"), "training diverged"),
        (MemoryError(), "not enough memory"),
        (RuntimeError("CUDA out of memory"), "not enough memory"),
        (RuntimeError("std::bad_alloc"), "not enough memory"),
        (InputError("why"), "why"),
        (np.linalg.LinAlgError("Singular matrix"), "LinAlgError: Singular matrix"),
        (KeyError("a mistake"), "KeyError: 'a mistake'"),
    ],
)
@pytest.mark.parametrize("where", ["fit", "prepare"])
def test_what_fails_says_why(error, why, where, monkeypatch) -> None:
    def failing(*_, **__):
        raise error

    monkeypatch.setattr(jobs, where, failing)
    failed = Trainer(DATA, scores, seed=0, device="cpu")(JOB)
    assert isinstance(failed, Failed)
    assert failed.why == why
    assert "in failing" in failed.traceback
    assert type(failed.error) is (type(error) if isinstance(error, GcnslError) else GcnslError)


def test_an_interruption_is_no_failure(monkeypatch) -> None:
    def interrupted(*_, **__):
        raise Interrupted("interrupted")

    monkeypatch.setattr(jobs, "fit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        Trainer(DATA, scores, seed=0, device="cpu")(JOB)


def test_inputs_are_shared_by_splits_unless_training_nodes_decide_on_them() -> None:
    options = {"seed": 0, "device": torch.device("cpu")}
    words = Preparations(METHODS["mlp"], DATA, **options)
    assert words.on(0) is words.on(1)
    quantities = copy.copy(DATA)
    quantities.x = DATA.x + torch.arange(60)[:, None]
    made = Preparations(METHODS["mlp"], quantities, **options)
    first, second = made.on(0), made.on(1)
    assert made.on(1) is second
    for run, ready in enumerate((first, second)):
        assert ready.inputs[0][DATA.train_mask[:, run]].mean(dim=0).abs().max() < 1e-5


def test_categories_are_those_of_the_training_nodes() -> None:
    towns = np.where(DATA.train_mask[:, 0].numpy(), "in the first", "not in it")
    nodes = pd.DataFrame({"id": np.arange(60), "town": towns, "label": DATA.y.numpy()})
    edges = pd.DataFrame(DATA.edge_index.numpy().T, columns=["source", "target"])
    data = from_tables(nodes, edges)
    data.update({name: DATA[name] for name in ("train_mask", "val_mask", "test_mask")})
    made = Preparations(METHODS["mlp"], data, seed=0, device=torch.device("cpu"))
    assert made.on(0).graph.feature_names == ["town=in the first"]
    assert made.on(1).graph.feature_names == ["town=in the first", "town=not in it"]
