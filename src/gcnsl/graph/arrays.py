"""Arrays in whatever form the caller has them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from gcnsl.errors import InputError


def as_array(values: Any, name: str) -> NDArray[Any]:
    """Convert anything array-like to a NumPy array; ``name`` is for the message if that fails."""
    if isinstance(values, Tensor):
        return values.detach().cpu().numpy()
    try:
        return np.asarray(values)
    except (ValueError, TypeError) as error:
        raise InputError(f"{name} is not an array ({error}): give NumPy, torch or SciPy data") from error
