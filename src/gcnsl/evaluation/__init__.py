"""What users do with several runs: train on splits, compare methods, search for hyper-parameters, judge differences.

The search is not imported here: it alone needs Optuna.
"""

from gcnsl.evaluation.comparison import Comparison, compare
from gcnsl.evaluation.measured import Measured, find_imbalance, measure_classifier, measure_split
from gcnsl.evaluation.outcome import Outcome, run_split
from gcnsl.evaluation.statistics import PairedDifference, paired_difference

__all__ = [
    "Comparison",
    "Measured",
    "Outcome",
    "PairedDifference",
    "compare",
    "find_imbalance",
    "measure_classifier",
    "measure_split",
    "paired_difference",
    "run_split",
]
