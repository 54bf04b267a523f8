"""All methods by name: how inputs are prepared, how models are built and trained, and their hyper-parameters."""

from typing import TYPE_CHECKING

from gcnsl.lazy import lazy

if TYPE_CHECKING:
    from gcnsl.methods.fitted import Fitted, fit, initial_model
    from gcnsl.methods.prepared import Prepared, prepare
    from gcnsl.methods.registry import ALIASES, METHODS, Method, find_method
    from gcnsl.methods.resolver import resolve
else:
    __getattr__, __dir__ = lazy(__name__)

__all__ = [
    "ALIASES",
    "METHODS",
    "Fitted",
    "Method",
    "Prepared",
    "find_method",
    "fit",
    "initial_model",
    "prepare",
    "resolve",
]
