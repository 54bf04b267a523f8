import pytest

from gcnsl.methods import METHODS
from gcnsl.methods.registry import space_of, starts_of
from gcnsl.selection.proposals import TURNS, Proposals


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


def test_nothing_is_proposed_without_a_method() -> None:
    assert Proposals(3, seed=0).ask([]) is None


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
