from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data

from gcnsl import from_arrays, synthetic
from gcnsl.auto import candidates
from gcnsl.auto.candidates import DEEP, FIXED, PER_ENTRY, Candidate, FitCosts, portfolio
from gcnsl.auto.proposals import TURNS, Proposals
from gcnsl.methods import METHODS, find_method
from gcnsl.methods.registry import space_of, starts_of
from gcnsl.sparse import pairs_in_two_steps

from .cases import fake_fit, small_problem


def graph(*, features: int = 4, directed: bool = False) -> Data:
    edges = torch.tensor([[0, 1, 2, 3, 0], [1, 2, 3, 4, 4]])
    x = torch.rand(5, features) if features else None
    return from_arrays(x, edges, y=[0, 1, 0, 1, 0], directed=directed)


def test_candidates_differ_in_what_they_train() -> None:
    one, same, other = Candidate("x", "gcn"), Candidate("y", "gcn"), Candidate("x", "gcn", {"num_layers": 3})
    assert one == same
    assert hash(one) == hash(same)
    assert one != other
    assert other.resolved.options()["num_layers"] == 3


def test_every_candidate_is_a_method_with_options_of_its_own() -> None:
    for directed in (False, True):
        found = portfolio(graph(directed=directed))
        assert len(set(found)) == len({candidate.name for candidate in found}) == len(found)
        for candidate in found:
            assert candidate.method in METHODS
            assert candidate.resolved.options().items() >= candidate.options.items()
    assert all(space_of(method) for method in PER_ENTRY)


def test_facts_of_the_graph_decide(monkeypatch) -> None:
    methods = [candidate.method for candidate in portfolio(graph())]
    assert methods[0] == "label-propagation", "the cheapest comes first"
    assert {"mlp", "h2gcn-2"} <= set(methods)
    assert "dir-gcn" not in methods
    assert "mlp" not in [candidate.method for candidate in portfolio(graph(features=0))]
    directed = portfolio(graph(directed=True))
    assert {"dir-gcn"} <= {candidate.method for candidate in directed}
    assert {candidate.options.get("direction") for candidate in directed} == {None, "out", "undirected"}
    monkeypatch.setattr(candidates, "MANY_PAIRS", 3)
    assert "h2gcn-2" not in [candidate.method for candidate in portfolio(graph())]


def test_an_option_at_its_default_makes_no_other_candidate() -> None:
    default = find_method("gcn").options()["lr"]
    assert Candidate("one", "gcn") == Candidate("other", "gcn", {"lr": default})
    assert Candidate("one", "gcn") != Candidate("one", "gcn", {"lr": 2 * default})


def test_another_default_makes_another_candidate(monkeypatch) -> None:
    before, gcn = Candidate("one", "gcn"), METHODS["gcn"]
    monkeypatch.setitem(METHODS, "gcn", replace(gcn, training=gcn.training.changed(lr=2 * gcn.training.lr)))
    assert Candidate("one", "gcn") != before
    assert Candidate("one", "gcn", {"lr": gcn.training.lr}) == before


GCN, MLP = Candidate("GCN", "gcn"), Candidate("MLP", "mlp")


def test_there_is_a_cost_for_all_that_is_tried() -> None:
    graph = small_problem().graph
    assert {candidate.method for candidate in portfolio(graph)} | {"dir-gcn"} == set(PER_ENTRY)


@given(seconds=st.floats(1e-3, 1e3), features=st.integers(1, 50))
def test_estimates_follow_the_machine_and_the_size(seconds, features) -> None:
    problem = small_problem()
    graph = Data(x=torch.ones(100_000, features), edge_index=torch.zeros(2, 10, dtype=torch.long))
    costs, fits = FitCosts(graph), [fake_fit(problem, MLP, fold, skill=1, least=seconds) for fold in (0, 1)]
    assert costs.least_seconds(MLP, fits) == pytest.approx(seconds)
    millions = (100_000 * features + 10) / 1e6
    usual = {name: FIXED + millions * PER_ENTRY[name] for name in ("mlp", "gcn")}
    assert costs.least_seconds(GCN, fits) == pytest.approx(usual["gcn"] / usual["mlp"] * seconds)
    deep = Candidate("GCN, deep", "gcn", {"num_layers": 5})
    assert costs.least_seconds(GCN, fits) < costs.least_seconds(deep, fits) <= DEEP * costs.least_seconds(GCN, fits)


def test_the_best_methods_have_most_turns_until_there_are_enough() -> None:
    proposals = Proposals(6, seed=0)
    asked = [proposals.ask(["gcn", "mlp", "sage"]) for _ in range(7)]
    assert asked[-1] is None
    assert [candidate.method for candidate in asked[:-1]] == [("gcn", "mlp", "sage")[turn] for turn in TURNS]
    assert len(set(asked)) == 7
    assert asked[0].name == "GCN #1"
    for candidate in asked[:-1]:
        assert candidate.options.keys() == space_of(candidate.method).keys()
        candidate.resolved.options()


def test_suggestions_follow_what_was_told() -> None:
    proposals = Proposals(60, seed=0)
    alphas = []
    for _ in range(60):
        candidate = proposals.ask(["label-propagation"])
        alphas.append(candidate.options["alpha"])
        proposals.tell(candidate, -abs(alphas[-1] - 0.5))
    first, last = (sum(abs(alpha - 0.5) for alpha in part) for part in (alphas[:20], alphas[-20:]))
    assert last < 0.7 * first


@pytest.mark.parametrize("merit", [None, 0.5])
def test_what_was_not_proposed_is_not_told(merit) -> None:
    proposals = Proposals(2, seed=0)
    candidate = proposals.ask(["gcn"])
    proposals.tell(candidate, merit)
    proposals.tell(candidate, merit)
    assert proposals.ask(["gcn"]) is not None


def test_what_searches_try_first_is_proposed_first() -> None:
    proposals = Proposals(10, seed=0)
    for start in starts_of("gcn-sl-plus"):
        candidate = proposals.ask(["gcn-sl-plus"])
        assert candidate.resolved == METHODS["gcn-sl-plus"].with_options(**start)
        proposals.tell(candidate, 0.5)


def test_walks_of_two_steps_are_counted() -> None:
    data = synthetic(n=30, h=0.5, classes=2, degree=4, features=3, seed=0)
    dense = torch.zeros(30, 30)
    dense[tuple(data.edge_index)] = 1
    assert pairs_in_two_steps(data.edge_index, 30) == int((dense @ dense).sum(dim=1).clamp(max=30).sum())
