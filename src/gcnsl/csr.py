"""CSR tensors, made in one place."""

import warnings

import torch
from torch import Tensor


def csr_tensor(start: Tensor, column: Tensor, values: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The torch CSR tensor of this shape with row starts (n + 1), columns and values (one an entry).

    torch says once in each process that the layout is in beta and that nobody checks its invariants. Both are known:
    the parts come from code that keeps them.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse", category=UserWarning)
        return torch.sparse_csr_tensor(start, column, values, size=shape)
