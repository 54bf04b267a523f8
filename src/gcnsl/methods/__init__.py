"""All methods by name: how inputs are prepared, how models are built and trained, and their hyper-parameters."""

from gcnsl.methods.fitted import Fitted, fit, initial_model
from gcnsl.methods.prepared import Prepared, prepare
from gcnsl.methods.registry import ALIASES, METHODS, Method, find_method
from gcnsl.methods.resolver import resolve

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
