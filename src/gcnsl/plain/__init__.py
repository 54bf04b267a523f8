"""Models that are not neural: they are fitted by counting or by scikit-learn, and predict as torch modules."""

from gcnsl.plain.label_propagation import LabelPropagation, LabelPropagationConfig
from gcnsl.plain.twins import Twins, TwinsConfig

__all__ = ["LabelPropagation", "LabelPropagationConfig", "Twins", "TwinsConfig"]
