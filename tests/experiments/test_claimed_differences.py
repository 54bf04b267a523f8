from itertools import product

import pytest

from gcnsl.experiments.claimed_differences import COMPARISONS
from gcnsl.experiments.plan import EXPERIMENTS, MERGES, Scope, plan

CLAIMED = [(name, claimed) for name, several in COMPARISONS.items() for claimed in several]


def test_the_paper_makes_eighteen_claims_each_once() -> None:
    texts = [claimed.text for _, claimed in CLAIMED]
    assert len(texts) == len(set(texts))
    assert sum(claimed.of_paper for _, claimed in CLAIMED) == 18
    assert COMPARISONS.keys() <= EXPERIMENTS.keys()


@pytest.mark.parametrize("name", COMPARISONS)
def test_what_is_compared_is_planned(name) -> None:
    planned = {(cell.row, cell.column) for cell in plan(name, Scope(runs=1)).cells}
    for claimed in COMPARISONS[name]:
        assert claimed.columns
        for method, row, column in product(MERGES, [*claimed.more, *claimed.less], claimed.columns):
            assert (row.format(method), column) in planned
