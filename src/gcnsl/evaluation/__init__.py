"""How good models are: measured once, compared over several splits, shown in pictures and on pages."""

from gcnsl.evaluation.comparison import Comparison, compare
from gcnsl.evaluation.measured import Measured, measure_classifier, measure_split
from gcnsl.evaluation.statistics import PairedDifference, paired_difference

__all__ = [
    "Comparison",
    "Measured",
    "PairedDifference",
    "compare",
    "measure_classifier",
    "measure_split",
    "paired_difference",
]
