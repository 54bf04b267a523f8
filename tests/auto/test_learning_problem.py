import torch
from hypothesis import given
from hypothesis import strategies as st

from gcnsl import synthetic
from gcnsl.auto import AutoSettings
from gcnsl.auto.learning_problem import deal_folds, make_problem

from .cases import small_problem


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
    problem = small_problem()
    assert problem.folds == 5
    known = torch.arange(60) >= 12
    assert torch.equal(problem.learned, known)
    assert problem.graph.y[:12].tolist() == [-1] * 12, "labels that are held back are not even sent along"
    masks = [tuple(problem.masks(fold).values()) for fold in range(5)]
    assert torch.equal(sum(val.int() for _, val in masks), known.int())
    for train, val in masks:
        assert torch.equal(train | val, known)
        assert not (train & val).any()
    assert torch.equal(problem.validated(2), masks[0][1] | masks[1][1])


def test_validation_nodes_are_kept_if_wanted() -> None:
    problem = small_problem(keep_validation=True)
    (train, val), every_fourth = problem.masks(0).values(), torch.arange(60) % 4 == 0
    assert problem.folds == 1
    assert torch.equal(val, every_fourth & (torch.arange(60) >= 12))
    assert torch.equal(train, ~every_fourth & (torch.arange(60) >= 12))
    assert torch.equal(problem.validated(1), val)


def test_few_labels_make_few_folds() -> None:
    assert small_problem(n=24, held_back=18).folds == 3
    assert small_problem(n=24, held_back=21).folds == 2


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
    monkeypatch.setattr("gcnsl.identity.__version__", "9.9")
    identities.append(small_problem().identity)
    assert len(set(identities)) == 9
