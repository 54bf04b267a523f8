"""What users do with several runs: train on splits, compare methods, judge differences."""

from gcnsl.evaluation.comparison import Comparison, compare
from gcnsl.evaluation.imbalance import find_imbalance
from gcnsl.evaluation.outcome import Outcome, run_split
from gcnsl.evaluation.statistics import PairedDifference, paired_difference

__all__ = ["Comparison", "Outcome", "PairedDifference", "compare", "find_imbalance", "paired_difference", "run_split"]
