"""What benchmarks compute of what they have measured; their figures are of other machines and days."""

import numpy as np
import pytest
from bench.false_leads import TEST_SHARE, equal_methods, false_leads, is_said_to_lead
from bench.scale import table_of_model


@pytest.mark.parametrize("test_share", [0.0, TEST_SHARE])
@pytest.mark.parametrize("methods", [2, 4, 10])
def test_one_of_several_equal_methods_seldom_leads(methods, test_share) -> None:
    said, uncorrected = false_leads(methods, 5, test_share, simulations=400)
    assert said <= 0.05 + 2 * (0.05 * 0.95 / 400) ** 0.5
    if methods == 10:
        assert uncorrected > 0.2, "so that the simulation would notice"


def test_a_method_that_is_better_is_still_said_to_lead() -> None:
    rng, found = np.random.default_rng(0), []
    for _ in range(50):
        comparison = equal_methods(5, 10, TEST_SHARE, rng)
        for reached in comparison.runs["method 0"].values():
            reached.scores["accuracy"] += 0.2
        found.append(is_said_to_lead(comparison))
    assert sum(found) > 40


def test_the_model_of_larger_graphs_is_a_line_and_is_checked_at_the_largest() -> None:
    def measured(n: int) -> dict:
        found = {"peak_gib": 1 + n / 1e6, "epoch": {"cores": n / 1e3}}
        return {"methods": {"gcn-sl-plus": found}}

    rows = table_of_model({str(n): measured(n) for n in (1000, 10**5, 10**6)}).splitlines()[2:]
    assert rows[0] == "| 1,000,000 | measured | 2.0 | 1,000 s |"
    assert rows[1] == "| 1,000,000 | by the model of the smaller ones | 2.0 | 1,000 s |"
    assert rows[-1] == "| 1,000,000,000 | by the model | 1,001.0 | 1,000,000 s |"
