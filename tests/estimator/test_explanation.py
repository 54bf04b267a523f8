from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch

from gcnsl import InputError, NodeClassifier, from_arrays, from_tables
from gcnsl.auto import Blend
from gcnsl.auto.ensemble import Member
from gcnsl.datasets import with_random_split
from gcnsl.estimator.explanation import Tally, explain, find_node, learning_member
from gcnsl.nn import MLP, NLGNN
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
    similarities = [other.similarity for other in told.reconnected]
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


def test_what_an_edge_adds_is_what_predictions_without_it_lack(model) -> None:
    told = explain(model, 5)
    logit = {name: np.log(p) for name, p in told.probabilities.items()}
    assert any(other.effect for other in told.original)
    sizes = [abs(other.effect or 0) for other in told.original]
    assert sizes == sorted(sizes, reverse=True)
    for ends, effect, found in [
        *(([o.id], o.effect, o.becomes or told.node.predicted) for o in told.original[:3]),
        ([o.id for o in told.original], told.alone.effect, told.alone.predicted),
    ]:
        others = [int(name[1:]) for name in ends]
        (a, b), kept = EDGES, np.ones(EDGES.shape[1], dtype=bool)
        kept[((a == 5) & np.isin(b, others)) | ((b == 5) & np.isin(a, others))] = False
        p = dict(zip(model.classes_.tolist(), model.predict_proba(X, edge_index=EDGES[:, kept])[5], strict=True))
        before = logit[told.node.predicted] - logit[told.rival]
        assert effect == pytest.approx(before - np.log(p[told.node.predicted] / p[told.rival]), abs=1e-4)
        assert found == max(p, key=p.__getitem__)


def test_it_is_argued_with_the_runner_up_the_true_class_or_a_class_that_is_named(model) -> None:
    for node in range(N):
        told = explain(model, node, edges=0, with_contributions=False)
        wrong = told.node.label not in (None, told.node.predicted)
        assert told.rival == (told.node.label if wrong else list(told.probabilities)[1])
    last = list(told.probabilities)[2]
    assert model.explain(f"n{N - 1}", against=last).rival == last


def test_edges_that_a_model_does_not_read_are_not_spoken_of() -> None:
    told = (
        NodeClassifier("mlp", epochs=3, device="cpu").fit(X, np.where(HIDDEN, -1, TRUTH), edge_index=EDGES).explain(5)
    )
    assert (told.alone, told.reconnected, told.learned_by) == (None, None, "")
    assert {other.effect for other in told.original} == {None}


def test_contributions_are_by_column_with_the_values_of_the_table(tmp_path) -> None:
    ages = np.where(np.arange(N) % 5, 20.0 + np.arange(N), np.nan)
    nodes = pd.DataFrame({"id": IDS, "label": TRUTH, "age": ages, "job": np.array(["cook", "smith", "monk"])[TRUTH]})
    nodes["joined"] = pd.Timestamp("2024-01-31") + pd.to_timedelta(np.arange(N) % 7, unit="D")
    drinks = np.array(["beer", "milk", "tea", "wine"])
    nodes["likes"] = ["|".join(drinks[np.arange(4) != number % 5]) for number in range(N)]
    edges = pd.DataFrame(IDS[EDGES.T], columns=["source", "target"])
    trained = NodeClassifier("logistic").fit_graph(from_tables(nodes, edges))
    trained.save(tmp_path / "model")
    for each in (trained, NodeClassifier.load(tmp_path / "model")):
        for node in (1, 5):
            found = {c.name: c for c in each.explain(f"n{node}").contributions}
            age = "missing" if node % 5 == 0 else pytest.approx(20.0 + node)
            jobs = nodes["job"][EDGES[1][EDGES[0] == node]].value_counts(normalize=True)
            expected = {"age": age, "job": nodes["job"][node], "joined": str(nodes["joined"][node].date())}
            expected |= {"likes": nodes["likes"][node].replace("|", ", ")}
            assert {name: found[name].value for name in expected} == expected
            around = found["job of neighbours"]
            assert around.column == "job"
            assert around.value in {f"{job} {share:.0%}" for job, share in jobs[jobs == jobs.max()].items()}
            columns = {c.column for c in found.values()} - {None}
            assert columns <= {"age", "job", "joined", "likes"}


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


def test_the_heaviest_that_learns_a_graph_shows_it() -> None:
    def of(*models) -> tuple[object, str]:
        members = tuple(
            Member(type(model).__name__, 1 / len(models), 1.0, (SimpleNamespace(model=model),)) for model in models
        )
        found, words = learning_member(SimpleNamespace(fitted_=Blend(members, History(), None)))
        return found.fitted_.model, words

    network, learner = MLP(3, 4, 2), NLGNN(3, 4, 2)
    assert of(network, learner) == (learner, "NLGNN, 50% of the ensemble")
    assert of(network) == (network, "MLP")


@pytest.fixture(scope="module")
def hubs() -> NodeClassifier:
    """Trained on nodes that point to hub 10 or to hub 11, according to their class."""
    arcs = torch.tensor([[i, 10 + i % 2] for i in range(10)] + [[10, 0]]).T
    x = torch.eye(12)[:, :4] + 0.1
    data = from_arrays(x, arcs, [i % 2 for i in range(12)], directed=True)
    data.feature_names = ["tall", "old", "blue", "round"]
    data.train_mask = torch.arange(12) < 10
    data.val_mask = ~data.train_mask
    data.node_ids = np.array([f"node {i}" for i in range(12)])
    options = {"features_heads": 1, "mean_degree": None, "epsilon": 0.5, "epochs": 5, "device": "cpu"}
    return NodeClassifier("gcn-sl-plus", **options).fit_graph(data)


def test_shared_neighbours_and_features_are_named(hubs) -> None:
    told = explain(hubs, 0)
    twin = next(other for other in told.reconnected if other.id == "node 2")
    links = next(reason for reason in twin.reasons if reason.measure == "links")
    assert links.parts.keys() == {"node 10"}
    assert links.similarity == pytest.approx(1, abs=1e-5)
    assert links.graph == "A* by links"
    assert str(links) == "shared neighbours node 10"
    for other in told.reconnected:
        assert other.reasons
        for reason in other.reasons:
            assert reason.similarity >= 0.5
            if reason.measure == "features":
                assert reason.graph == "A* by features"
                assert reason.parts.keys() <= {"tall", "old", "blue", "round"}


def test_a_neighbour_that_is_shared_in_both_directions_is_named_once() -> None:
    there = torch.tensor([[i, 10 + i % 2] for i in range(10)]).T
    data = from_arrays(torch.eye(12), torch.cat([there, there.flip(0)], 1), [i % 2 for i in range(12)], directed=True)
    data.train_mask = torch.arange(12) < 10
    data.val_mask = ~data.train_mask
    options = {"direction": "both", "mean_degree": None, "epsilon": 0.5, "epochs": 3, "device": "cpu"}
    told = explain(NodeClassifier("gcn-sl-plus", **options).fit_graph(data), 0)
    twin = next(other for other in told.reconnected if other.id == 2)
    (links,) = twin.reasons
    assert (set(links.parts), links.others) == ({10}, 0)
    assert links.parts[10] == pytest.approx(1, abs=1e-5), "the parts of both directions"
