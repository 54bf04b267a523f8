import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcnsl.selection.candidates import Candidate, portfolio
from gcnsl.selection.fit_costs import DEEP, PER_ENTRY, FitCosts

from .cases import fake_fit, small_problem

GCN, MLP = Candidate("GCN", "gcn"), Candidate("MLP", "mlp")


def test_there_is_a_cost_for_all_that_is_tried() -> None:
    graph = small_problem().graph
    assert {candidate.method for candidate in portfolio(graph)} | {"dir-gcn"} == set(PER_ENTRY)


@given(seconds=st.floats(1e-3, 1e3))
def test_estimates_follow_the_machine(seconds) -> None:
    problem = small_problem()
    costs, fits = FitCosts(problem.graph), [fake_fit(problem, MLP, fold, skill=1, least=seconds) for fold in (0, 1)]
    assert costs.least_seconds(MLP, fits) == pytest.approx(seconds)
    ratio = PER_ENTRY["gcn"] / PER_ENTRY["mlp"]
    assert costs.least_seconds(GCN, fits) == pytest.approx(ratio * seconds)
    deep = Candidate("GCN, deep", "gcn", {"num_layers": 5})
    assert costs.least_seconds(deep, fits) == pytest.approx(DEEP * ratio * seconds)


def test_nothing_is_known_before_the_first_fit() -> None:
    assert FitCosts(small_problem().graph).least_seconds(GCN, []) == 0
