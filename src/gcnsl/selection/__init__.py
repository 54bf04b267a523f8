"""The best model for a graph: a race of methods within a time budget, and a weighted ensemble of the best of them."""

from typing import TYPE_CHECKING

from gcnsl.lazy import lazy

if TYPE_CHECKING:
    from gcnsl.selection.auto_settings import AUTO, AutoSettings
    from gcnsl.selection.blend import Blend
    from gcnsl.selection.choice import ChosenBy, Selected
    from gcnsl.selection.tournament import Progress, select
else:
    __getattr__, __dir__ = lazy(__name__)

__all__ = ["AUTO", "AutoSettings", "Blend", "ChosenBy", "Progress", "Selected", "select"]
