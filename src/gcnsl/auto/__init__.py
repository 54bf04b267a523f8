"""The best model for a graph: a race of methods within a time budget, and a weighted ensemble of the best of them."""

from typing import TYPE_CHECKING

from gcnsl.lazy import lazy

if TYPE_CHECKING:
    from gcnsl.auto.auto_settings import AUTO, AutoSettings
    from gcnsl.auto.ensemble import Blend
    from gcnsl.auto.selection import ChosenBy, Progress, Selected, select
else:
    __getattr__, __dir__ = lazy(__name__)

__all__ = ["AUTO", "AutoSettings", "Blend", "ChosenBy", "Progress", "Selected", "select"]
