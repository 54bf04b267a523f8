from types import SimpleNamespace

import numpy as np
import pytest

from gcnsl import InputError, from_arrays
from gcnsl.auto import Blend
from gcnsl.auto.ensemble import Member
from gcnsl.datasets import with_random_split
from gcnsl.estimator.explanation import Tally, attribute_features, explain, explained_member, find_node
from gcnsl.nn import MLP
from gcnsl.plain.boosted_trees import BoostedTrees
from gcnsl.plain.class_votes import LabelPropagation
from gcnsl.training import History

from .cases import EDGES, HIDDEN, NAMES, TRUTH, N, X, classifier, fitted

IDS = np.array([f"n{i}" for i in range(N)])
LABELS = [None if hidden else str(NAMES[c]) for c, hidden in zip(TRUTH, HIDDEN, strict=True)]


@pytest.fixture(scope="module")
def model():
    return fitted(y=LABELS, epsilon=0.7, fit={"node_ids": IDS})


@pytest.mark.parametrize("number", [0, 2, 17])
def test_neighbours_are_those_of_the_two_graphs(model, number) -> None:
    told = explain(model, number)
    a = set(EDGES[1][EDGES[0] == number]) - {number}
    learned = model.learned_graph()
    row = learned.edge_index[0] == number
    a_star = dict(zip(learned.edge_index[1][row].tolist(), learned.edge_weight[row].tolist(), strict=True))
    del a_star[number]
    assert {other.id for other in told.original} == {f"n{i}" for i in a}
    assert {other.id: other.similarity for other in told.reconnected} == {
        f"n{i}": pytest.approx(weight, abs=1e-6) for i, weight in a_star.items()
    }
    for other in (*told.original, *told.reconnected):
        i = int(other.id[1:])
        assert (other.original, other.reconnected) == (i in a, i in a_star)
    for neighbours in (told.original, told.reconnected):
        similarities = [other.similarity for other in neighbours]
        assert similarities == sorted(similarities, reverse=True)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_links_have_the_directions_and_weights_that_the_graph_has(directed, weighted) -> None:
    weight = {(2, 7): 1.5, (7, 2): 2.5, (2, 9): 3.0, (11, 2): 0.5, (2, 2): 4.0, (9, 11): 1.0}
    data = from_arrays(
        X,
        np.array(list(weight)).T,
        np.where(HIDDEN, -1, TRUTH),
        directed=directed,
        edge_weight=list(weight.values()) if weighted else None,
    )
    told = explain(classifier(epochs=1).fit_graph(with_random_split(data)), 2)
    expected = {7: {"out": 1.5, "in": 2.5}, 9: {"out": 3.0}, 11: {"in": 0.5}}
    if not directed:
        expected = {other: {"edge": max(ways.values())} for other, ways in expected.items()}
    if not weighted:
        expected = {other: dict.fromkeys(ways) for other, ways in expected.items()}
    assert {other.id: other.links for other in told.original} == expected


def test_known_and_predicted_classes_are_told_apart(model) -> None:
    told = explain(model, 2)
    predicted = model.predict()
    numbers = [int(other.id[1:]) for other in told.reconnected]
    known = [LABELS[i] == told.node.predicted for i in numbers if LABELS[i] is not None]
    guessed = [predicted[i] == told.node.predicted for i in numbers if LABELS[i] is None]
    assert known
    assert guessed
    assert HIDDEN[2]
    assert (told.node.label, told.node.used_for, told.node.predicted) == (None, None, predicted[2])
    assert list(told.probabilities.values()) == pytest.approx(sorted(model.predict_proba()[2], reverse=True))
    assert told.tally(told.reconnected) == {
        "known": Tally(len(known), pytest.approx(np.mean(known))),
        "predicted": Tally(len(guessed), pytest.approx(np.mean(guessed))),
    }
    assert told.summary(told.reconnected) == (
        f"{len(numbers)} neighbours, {len(known)} known ({np.mean(known):.0%} of class {told.node.predicted}) and "
        f"{len(guessed)} predicted ({np.mean(guessed):.0%} of class {told.node.predicted})"
    )
    seen = explain(model, 0).node
    assert (seen.label, seen.used_for) == (LABELS[0], "training" if model.train_mask_[0] else "validation")
    assert told.tally([]) == {"known": Tally(0, None), "predicted": Tally(0, None)}


def test_features_are_named_and_the_largest_shares_come_first(model) -> None:
    told = explain(model, 5)
    first, second = (model.classes_.tolist().index(name) for name in (told.node.predicted, told.rival))
    shares = attribute_features(model.fitted_, 5, one=first, other=second)
    assert {f.name: (f.value, f.log_odds) for f in told.features} == {
        f"feature {j}": (pytest.approx(X[5, j]), pytest.approx(shares[j])) for j in np.flatnonzero(shares)
    }
    sizes = [abs(feature.log_odds) for feature in told.features]
    assert sizes == sorted(sizes, reverse=True)


def test_a_crowd_is_noticed(model, monkeypatch) -> None:
    told = explain(model, 2)
    assert not told.is_crowded
    assert explain(fitted(epsilon=0.01, feature_shift=100.0), 2).is_crowded
    monkeypatch.setattr("gcnsl.estimator.explanation.CROWD", len(told.reconnected))
    assert told.is_crowded


@pytest.mark.parametrize(
    ("options", "branches"),
    [
        ({"rounds": 3}, ["own features", "A (2 steps)", "A (3 steps)", "A*"]),
        ({"rounds": 1}, ["own features", "A (1 step)", "A*"]),
        ({"use_adjacency": False, "merge": "average"}, ["own features", "A*"]),
        ({"use_reconnected": False, "n_components": 0}, ["own features", "A (1 step)", "A (2 steps)"]),
    ],
)
def test_evidence_adds_up_to_the_difference_of_the_logits(options, branches) -> None:
    model = fitted(**options)
    told = explain(model, 5)
    logits = dict(zip(model.classes_.tolist(), model.fitted_.logits()[5].tolist(), strict=True))
    assert list(told.evidence) == branches
    assert (told.reconnected is None) == ("A*" not in branches)
    first, second, _ = told.probabilities
    assert (told.node.predicted, told.rival) == (first, second)
    assert sum(told.evidence.values()) == pytest.approx(logits[first] - logits[second], abs=1e-5)


def test_nodes_are_found_by_id_or_number(model) -> None:
    assert find_node(model, "n17") == 17
    assert find_node(fitted(fit={"node_ids": np.arange(N)[::-1]}), "0") == N - 1
    nameless = fitted()
    assert find_node(nameless, "17") == 17
    for bad in (str(N), "-1", "n1"):
        with pytest.raises(InputError, match=rf"node\('{bad}'\) must be a number from 0 to {N - 1}"):
            find_node(nameless, bad)
    with pytest.raises(InputError, match=r"node\('nn17'\) is the id of no node .*: did you mean 'n17'\?"):
        find_node(model, "nn17")
    with pytest.raises(InputError, match="ids look like 'n0'"):
        find_node(model, "Rumpelstiltskin")


TREES, VOTES, NETWORK = BoostedTrees(1, 2), LabelPropagation(4, 2), MLP(3, 4, 2)


def of(*models) -> tuple[object, str]:
    members = tuple(
        Member(type(model).__name__, 1 / len(models), 1.0, (SimpleNamespace(model=model),)) for model in models
    )
    found, words = explained_member(SimpleNamespace(fitted_=Blend(members, History(), None)))
    return found.fitted_.model, words


def test_the_heaviest_that_has_reasons_speaks() -> None:
    assert of(TREES, VOTES, NETWORK) == (NETWORK, "MLP, 33% of the ensemble,")
    assert of(VOTES, TREES) == (VOTES, "LabelPropagation, 50% of the ensemble,")
    assert of(TREES) == (TREES, "BoostedTrees")
