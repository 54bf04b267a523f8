import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data

from gcnsl import from_arrays, synthetic
from gcnsl.auto import AutoSettings, candidates
from gcnsl.auto.candidates import (
    PER_ENTRY,
    Candidate,
    deal_folds,
    make_problem,
    portfolio,
    promises,
)
from gcnsl.methods import METHODS
from gcnsl.methods.registry import space_of

from .cases import small_problem


def graph(*, features: int = 4, directed: bool = False) -> Data:
    edges = torch.tensor([[0, 1, 2, 3, 0], [1, 2, 3, 4, 4]])
    x = torch.rand(5, features) if features else None
    return from_arrays(x, edges, y=[0, 1, 0, 1, 0], directed=directed)


def test_candidates_are_equal_if_they_train_the_same(monkeypatch) -> None:
    one, gcn = Candidate("x", "gcn"), METHODS["gcn"]
    default = gcn.options()["lr"]
    assert one == Candidate("y", "gcn") == Candidate("x", "gcn", {"lr": default})
    assert hash(one) == hash(Candidate("y", "gcn"))
    assert one != Candidate("x", "gcn", {"num_layers": 3})
    monkeypatch.setitem(METHODS, "gcn", replace(gcn, training=gcn.training.changed(lr=2 * default)))
    assert Candidate("x", "gcn") != one, "another default"
    assert Candidate("x", "gcn", {"lr": default}) == one


def test_every_candidate_is_a_method_with_options_and_a_cost_of_its_own() -> None:
    for directed in (False, True):
        found = portfolio(graph(directed=directed))
        assert len(set(found)) == len({candidate.name for candidate in found}) == len(found)
        for candidate in found:
            assert candidate.resolved.options().items() >= candidate.options.items()
    assert {candidate.method for candidate in found} == set(PER_ENTRY)
    assert all(space_of(method) for method in PER_ENTRY)


def test_facts_of_the_graph_decide(monkeypatch) -> None:
    methods = [candidate.method for candidate in portfolio(graph())]
    assert methods[0] == "label-propagation", "the cheapest comes first"
    assert {"mlp", "h2gcn-2"} <= set(methods)
    assert "dir-gcn" not in methods
    assert "mlp" not in [candidate.method for candidate in portfolio(graph(features=0))]
    directed = portfolio(graph(directed=True))
    assert {candidate.options.get("direction") for candidate in directed} == {None, "out", "undirected"}
    monkeypatch.setattr(candidates, "MANY_PAIRS", 3)
    assert "h2gcn-2" not in [candidate.method for candidate in portfolio(graph())]


@pytest.mark.parametrize(
    ("curve", "goal", "expected"),
    [
        ([0.5, 0.6, 0.7], 0.86, True),
        ([0.5, 0.6, 0.7], 0.88, False),  # 0.7 + 0.1 log(2) / log(1.5) = 0.87 in twice the time
        ([0.5, 0.7, 0.7], 0.6, False),  # it has settled
        ([0.8], 0.0, False),
        ([0.5, 0.9, 0.4, 0.5, 0.8, 0.6], 0.0, False),  # the best was long ago
        ([0.5, math.nan, 0.7], 0.0, False),
    ],
)
def test_a_learning_curve_rises_with_the_logarithm_of_time(curve, goal, expected) -> None:
    assert promises(curve, goal, 2.0) == expected
    log_curve = np.log(np.arange(1, 301))
    assert promises(log_curve, math.log(1200) - 0.1, 4.0)
    assert not promises(log_curve, math.log(1200) + 0.1, 4.0)


def test_folds_to_compare_on_have_nodes_enough() -> None:
    for n, folds in ((60, 5), (2012, 4), (8000, 1)):
        problem = small_problem(n=n)
        assert problem.compared == folds
        assert int(problem.validated(folds).sum()) >= 1500 or folds == problem.folds
    assert small_problem(keep_validation=True).compared == 1


@given(st.lists(st.integers(-1, 3), min_size=1, max_size=60), st.integers(2, 6), st.integers(0, 5))
def test_folds_are_of_equal_size_in_all_and_in_each_class(labels, folds, seed) -> None:
    y = torch.tensor(labels)
    fold = deal_folds(y, folds, seed=seed)
    assert torch.equal(fold == -1, y == -1)
    for part in (fold[y >= 0], *(fold[y == c] for c in range(4))):
        sizes = torch.bincount(part, minlength=folds)
        assert int(sizes.max() - sizes.min()) <= 1
    assert torch.equal(fold, deal_folds(y, folds, seed=seed))


def test_every_known_node_is_validated_once_and_learned_in_the_other_folds() -> None:
    problem, known = small_problem(), torch.arange(60) >= 12
    assert problem.folds == 5
    assert torch.equal(problem.learned, known)
    assert problem.graph.y[:12].tolist() == [-1] * 12, "labels that are held back are not even sent along"
    masks = [tuple(problem.masks(fold).values()) for fold in range(5)]
    assert torch.equal(sum(val.int() for _, val in masks), known.int())
    for train, val in masks:
        assert torch.equal(train | val, known)
        assert not (train & val).any()
    assert torch.equal(problem.validated(2), masks[0][1] | masks[1][1])
    assert small_problem(n=24, held_back=18).folds == 3
    assert small_problem(n=24, held_back=21).folds == 2


def test_validation_nodes_are_kept_if_wanted() -> None:
    problem = small_problem(keep_validation=True)
    (train, val), every_fourth = problem.masks(0).values(), torch.arange(60) % 4 == 0
    assert problem.folds == 1
    assert torch.equal(val, every_fourth & (torch.arange(60) >= 12))
    assert torch.equal(train, ~every_fourth & (torch.arange(60) >= 12))
    assert torch.equal(problem.validated(1), val)


def test_the_identity_tells_problems_apart(monkeypatch) -> None:
    identities = [
        small_problem(**options).identity
        for options in ({}, {"metric": "roc-auc"}, {"class_weight": "balanced"}, {"quality": "best"}, {"n": 61})
    ]
    assert identities[0] == small_problem().identity
    data = synthetic(n=60, h=0.8, classes=3, degree=4, features=8, seed=0, signal=0.9)
    every, settings = torch.arange(60) % 4 == 0, AutoSettings()
    for names in (None, list("abcdefgh"), list("bacdefgh")):
        data.class_names, data.feature_names = ["a", "b", "c"], names
        identities.append(make_problem(data, ~every, every, settings, seed=0, device="cpu").identity)
    monkeypatch.setattr("gcnsl.runs.jobs.__version__", "9.9")
    identities.append(small_problem().identity)
    assert len(set(identities)) == 9
