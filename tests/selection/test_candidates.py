from dataclasses import replace

import torch
from torch_geometric.data import Data

from gcnsl import from_arrays, synthetic
from gcnsl.methods import METHODS, find_method
from gcnsl.methods.registry import space_of
from gcnsl.selection import candidates
from gcnsl.selection.candidates import Candidate, portfolio
from gcnsl.selection.fit_costs import PER_ENTRY
from gcnsl.sparse import pairs_in_two_steps


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


def test_walks_of_two_steps_are_counted() -> None:
    data = synthetic(n=30, h=0.5, classes=2, degree=4, features=3, seed=0)
    dense = torch.zeros(30, 30)
    dense[tuple(data.edge_index)] = 1
    assert pairs_in_two_steps(data.edge_index, 30) == int((dense @ dense).sum(dim=1).clamp(max=30).sum())


def test_an_option_at_its_default_makes_no_other_candidate() -> None:
    default = find_method("gcn").options()["lr"]
    assert Candidate("one", "gcn") == Candidate("other", "gcn", {"lr": default})
    assert Candidate("one", "gcn") != Candidate("one", "gcn", {"lr": 2 * default})


def test_another_default_makes_another_candidate(monkeypatch) -> None:
    before, gcn = Candidate("one", "gcn"), METHODS["gcn"]
    monkeypatch.setitem(METHODS, "gcn", replace(gcn, training=gcn.training.changed(lr=2 * gcn.training.lr)))
    assert Candidate("one", "gcn") != before
    assert Candidate("one", "gcn", {"lr": gcn.training.lr}) == before
