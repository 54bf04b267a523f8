"""What users do with several runs: train on splits, compare methods, search for hyper-parameters, judge differences."""

from gcnsl.evaluation.comparison import Comparison, compare
from gcnsl.evaluation.hyperparameter_search import Found, Search, search
from gcnsl.evaluation.outcome import Outcome, run_split
from gcnsl.evaluation.statistics import PairedDifference, paired_difference

__all__ = [
    "Comparison",
    "Found",
    "Outcome",
    "PairedDifference",
    "Search",
    "compare",
    "paired_difference",
    "run_split",
    "search",
]
