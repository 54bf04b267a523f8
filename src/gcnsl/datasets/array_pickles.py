"""Pickles of arrays, lists and dictionaries, read without running anything else that they name."""

import io
import pickle
from collections import defaultdict
from typing import Any

import numpy as np
import scipy.sparse as sp

from gcnsl.errors import InputError

_KNOWN: dict[tuple[str, str], Any] = {
    ("numpy", "dtype"): np.dtype,
    ("numpy", "ndarray"): np.ndarray,
    ("numpy.core.multiarray", "_reconstruct"): np.empty(0).__reduce__()[0],
    ("scipy.sparse.csr", "csr_matrix"): sp.csr_matrix,
    ("collections", "defaultdict"): defaultdict,
    ("__builtin__", "list"): list,
}
"""All names that Planetoid's files need, as Python 2 wrote them."""


class _ArrayUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        try:
            return _KNOWN[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f"it names {module}.{name}") from None


def load_arrays(content: bytes, name: str) -> Any:
    """Return what a pickle of Python 2 holds; ``name`` is for the message if it holds anything but arrays."""
    try:
        return _ArrayUnpickler(io.BytesIO(content), encoding="latin1").load()
    except Exception as error:  # a damaged pickle can raise anything
        raise InputError(
            f"{name} is not a pickle of arrays ({error}): delete it, so that it is downloaded again"
        ) from error
