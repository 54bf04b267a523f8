"""Node classification on graphs whose neighbours may disagree.

The names below are loaded when they are first used, so that ``import gcnsl`` costs nothing.
"""

import importlib
from typing import TYPE_CHECKING, Any

from gcnsl.version import __version__ as __version__

if TYPE_CHECKING:
    from gcnsl.datasets import load, synthetic
    from gcnsl.errors import DownloadError, GcnslError, InputError
    from gcnsl.estimator import GCNSLClassifier, NodeClassifier
    from gcnsl.graph import from_arrays, from_data, from_networkx, from_scipy, from_tables
    from gcnsl.reconnection import reconnect, reconnected_edges
    from gcnsl.spectral import SpectralFeatures

_HOME = {
    "DownloadError": "gcnsl.errors",
    "GCNSLClassifier": "gcnsl.estimator",
    "GcnslError": "gcnsl.errors",
    "InputError": "gcnsl.errors",
    "NodeClassifier": "gcnsl.estimator",
    "SpectralFeatures": "gcnsl.spectral",
    "from_arrays": "gcnsl.graph",
    "from_data": "gcnsl.graph",
    "from_networkx": "gcnsl.graph",
    "from_scipy": "gcnsl.graph",
    "from_tables": "gcnsl.graph",
    "load": "gcnsl.datasets",
    "reconnect": "gcnsl.reconnection",
    "reconnected_edges": "gcnsl.reconnection",
    "synthetic": "gcnsl.datasets",
}

__all__ = [
    "DownloadError",
    "GCNSLClassifier",
    "GcnslError",
    "InputError",
    "NodeClassifier",
    "SpectralFeatures",
    "from_arrays",
    "from_data",
    "from_networkx",
    "from_scipy",
    "from_tables",
    "load",
    "reconnect",
    "reconnected_edges",
    "synthetic",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
