import numpy as np
import pytest

from gcnsl.auto.proposals import Proposals, Tried, expected_gains
from gcnsl.methods import METHODS
from gcnsl.methods.registry import space_of, starts_of


def test_the_expected_gain_is_that_of_many_draws() -> None:
    tried = {"gcn": Tried([0.80, 0.84, 0.86], 2.0), "mlp": Tried([0.70, 0.76, 0.90], 1.0, 0.4)}
    better = {name: each.gains[1:] for name, each in tried.items()}
    usual = np.median([np.var(gains, ddof=1) for gains in better.values()])
    for name, each in tried.items():
        s = ((np.var(better[name], ddof=1) + 3 * usual) / 4) ** 0.5
        draws = np.random.default_rng(0).normal(np.mean(better[name]), s, 400_000)
        expected = each.new * np.maximum(draws - 0.9, 0).mean() / (each.seconds + 0.5)
        assert expected_gains(tried)[name] == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (Tried([0.8, 0.84], 1.0), Tried([0.7, 0.74], 1.0)),  # better
        (Tried([0.8, 0.84], 1.0), Tried([0.8, 0.84], 9.0)),  # faster
        (Tried([0.8, 0.76, 0.82, 0.7], 5.0), Tried([0.81] * 60, 0.1)),  # settings that change nothing
        (Tried([0.8, 0.82], 1.0), Tried([0.8, 0.82], 1.0, 0.1)),  # most predict what others do
        (Tried([0.8], 1.0), Tried([-np.inf], 1.0)),
    ],
)
def test_the_method_with_the_largest_expected_gain_is_next(first, second) -> None:
    gains = expected_gains({"gcn": first, "mlp": second, "sage": Tried([0.82], 60.0)})
    assert gains["gcn"] > gains["mlp"] >= 0
    asked = Proposals(1, seed=0).ask({"mlp": second, "gcn": first, "sage": Tried([0.5, 0.49], 60.0)})
    assert asked is not None
    assert asked[0].method == "gcn"


def test_candidates_have_all_that_is_searched_for_until_there_are_enough() -> None:
    proposals, tried = Proposals(6, seed=0), {"gcn": Tried([0.5], 1.0)}
    found = [proposals.ask(tried)[0] for _ in range(6)]
    assert proposals.ask(tried) is None
    assert len(set(found)) == 6
    assert [each.name for each in found] == [f"GCN #{number}" for number in range(1, 7)]
    for candidate in found:
        assert candidate.options.keys() == space_of("gcn").keys()
        candidate.resolved.options()


def test_proposals_follow_what_was_told() -> None:
    proposals, alphas = Proposals(60, seed=0), []
    for _ in range(60):
        candidate, trial = proposals.ask({"label-propagation": Tried([0.5], 1.0)})
        alphas.append(candidate.options["alpha"])
        trial.study.tell(trial, -abs(alphas[-1] - 0.5))
    first, last = (sum(abs(alpha - 0.5) for alpha in part) for part in (alphas[:20], alphas[-20:]))
    assert last < 0.7 * first


def test_what_searches_try_first_is_proposed_first() -> None:
    proposals = Proposals(10, seed=0)
    for start in starts_of("gcn-sl-plus"):
        candidate, trial = proposals.ask({"gcn-sl-plus": Tried([0.5], 1.0)})
        assert candidate.resolved == METHODS["gcn-sl-plus"].with_options(**start)
        trial.study.tell(trial, 0.5)
