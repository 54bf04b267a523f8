import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data

from gcnsl.auto.candidates import Candidate, portfolio
from gcnsl.auto.fit_costs import DEEP, FIXED, PER_ENTRY, FitCosts

from .cases import fake_fit, small_problem

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


def test_nothing_is_known_before_the_first_fit() -> None:
    assert FitCosts(small_problem().graph).least_seconds(GCN, []) == 0
