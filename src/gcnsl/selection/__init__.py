"""The best model for a graph: a race of methods within a time budget, and a weighted ensemble of the best of them."""

from gcnsl.selection.auto_settings import AUTO, AutoSettings
from gcnsl.selection.blend import Blend
from gcnsl.selection.choice import Selected
from gcnsl.selection.tournament import Progress, select

__all__ = ["AUTO", "AutoSettings", "Blend", "Progress", "Selected", "select"]
