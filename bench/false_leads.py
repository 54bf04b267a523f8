"""How often one of several equally good methods is said to lead by more than noise.

    python bench/false_leads.py [--simulations 2000]

The scores of k methods have the same mean. In a run all of them share what the split or the seed does to them, and each
has noise of its own, normal, with a spread that differs from method to method. On several splits the noise of a method
is correlated between its runs, as training sets overlap: n_test / (n_test + n_train), here .29. A sentence of `gcnsl
compare` about a lead that is "more than noise" is then wrong. Prints how often there is one, beside how often there
would be if p-values were not corrected for the number of methods, and writes ``bench/results/false_leads.json``.
"""

import argparse
import json
from itertools import product
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from gcnsl.evaluation import Comparison, paired_difference
from gcnsl.evaluation.comparison import Reached
from gcnsl.evaluation.statistics import LEVEL

RESULTS = Path(__file__).parent / "results" / "false_leads.json"
METHODS, RUNS = (2, 3, 4, 6, 10, 20), (5, 10)
TEST_SHARE = 0.4
"""n_test / n_train, if there are several splits."""
MEAN, SHARED, OWN = 0.7, 0.05, (0.02, 0.06)
"""Of the scores, of what a run does to all methods, and the least and largest spread of a method's own noise."""


def equal_methods(methods: int, runs: int, test_share: float, rng: np.random.Generator) -> Comparison:
    """What equally good methods reach."""
    correlation = test_share / (1 + test_share)
    own = np.sqrt(1 - correlation) * rng.normal(size=(methods, runs)) + np.sqrt(correlation) * rng.normal(
        size=(methods, 1)
    )
    scores = MEAN + SHARED * rng.normal(size=runs) + rng.uniform(*OWN, size=(methods, 1)) * own
    by_name = {
        f"method {number}": {run: Reached({"accuracy": value}) for run, value in enumerate(values)}
        for number, values in enumerate(scores.tolist())
    }
    return Comparison(test_share, splits=runs if test_share else 1, runs=by_name)


def is_said_to_lead(comparison: Comparison) -> bool:
    """Whether the verdict is that the best method leads by more than noise."""
    return "more than noise" in comparison.verdict()


def would_lead_uncorrected(comparison: Comparison) -> bool:
    """Whether the best method leads one of the others if each p-value is taken for itself."""
    best, *others = (np.array(comparison.values(name)) for name in comparison.ranking)
    return any(paired_difference((best - other).tolist(), comparison.test_share).p < LEVEL for other in others)


def false_leads(methods: int, runs: int, test_share: float, simulations: int, seed: int = 0) -> tuple[float, float]:
    """The share of simulations in which a lead is said to be more than noise: as it is, and without correction."""
    rng = np.random.default_rng([seed, methods, runs, test_share > 0])
    drawn = [equal_methods(methods, runs, test_share, rng) for _ in range(simulations)]
    return float(np.mean([*map(is_said_to_lead, drawn)])), float(np.mean([*map(would_lead_uncorrected, drawn)]))


def main() -> None:
    """Simulate, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--simulations", type=int, default=2000)
    simulations = parser.parse_args().simulations
    rows = []
    for test_share, runs, methods in track([*product((0.0, TEST_SHARE), RUNS, METHODS)], "Simulating"):
        said, uncorrected = false_leads(methods, runs, test_share, simulations)
        splits = "several" if test_share else "one"
        rows.append({"splits": splits, "runs": runs, "methods": methods, "said": said, "uncorrected": uncorrected})
    table = Table("splits", "runs", "equal methods", "said to lead", "without correction")
    for row in rows:
        shares = (f"{100 * row[name]:.1f} %" for name in ("said", "uncorrected"))
        table.add_row(row["splits"], str(row["runs"]), str(row["methods"]), *shares)
    Console().print(table)
    RESULTS.write_text(json.dumps({"simulations": simulations, "level": LEVEL, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
