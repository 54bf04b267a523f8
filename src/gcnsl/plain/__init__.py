"""Models that are not neural: they are fitted by counting or by scikit-learn, and predict as torch modules."""

from gcnsl.plain.boosted_trees import BoostedTrees, BoostedTreesConfig
from gcnsl.plain.label_propagation import LabelPropagation, LabelPropagationConfig
from gcnsl.plain.logistic import Logistic, LogisticConfig
from gcnsl.plain.twins import Twins, TwinsConfig

__all__ = [
    "BoostedTrees",
    "BoostedTreesConfig",
    "LabelPropagation",
    "LabelPropagationConfig",
    "Logistic",
    "LogisticConfig",
    "Twins",
    "TwinsConfig",
]
