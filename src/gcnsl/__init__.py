"""Node classification on graphs whose neighbours may disagree.

The names below are loaded when they are first used, so that ``import gcnsl`` costs nothing.
"""

from typing import TYPE_CHECKING

from gcnsl.lazy import lazy
from gcnsl.version import __version__ as __version__

if TYPE_CHECKING:
    from gcnsl.datasets import load, synthetic
    from gcnsl.errors import DownloadError, GcnslError, InputError
    from gcnsl.estimator import GCNSLClassifier, NodeClassifier
    from gcnsl.graph import from_arrays, from_data, from_networkx, from_scipy, from_tables, to_networkx
    from gcnsl.reconnection import reconnect, reconnected_edges
    from gcnsl.spectral import AddSpectralFeatures, SpectralFeatures
else:
    __getattr__, __dir__ = lazy(__name__)

__all__ = [
    "AddSpectralFeatures",
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
    "to_networkx",
]
