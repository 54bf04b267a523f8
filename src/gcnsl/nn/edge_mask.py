"""The masks that PyTorch Geometric's explainers put on edges, in models that multiply by matrices."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn import MessagePassing
from torch_geometric.utils import scatter

from gcnsl.sparse import Matrix, SparseMatrix


class EdgeMask(MessagePassing):  # type: ignore[misc]
    """A mask of edges, which explainers put where they find a ``MessagePassing`` layer.

    What is passed between two nodes, in either direction, is multiplied by the mean of the masks of all edges between
    them. As in PyTorch Geometric, matrices are normalised before, and loops have no mask.
    """

    explain: bool | None = None
    """Whether there is a mask; an explainer sets it."""
    flow, aggr_module = "source_to_target", None

    def __init__(self) -> None:
        nn.Module.__init__(self)  # nothing is passed here
        self._edge_mask: Tensor | None = None
        self._apply_sigmoid = True
        self._message_forward_hooks = OrderedDict[int, Any]()  # for explainers that look for attention, and then say so

    __setstate__ = nn.Module.__setstate__

    def factors(self, one: Tensor, other: Tensor, edge_index: Tensor, num_nodes: int) -> Tensor:
        """What to multiply by between these pairs of nodes (k each): the mask, or 1 if no edge is between them."""
        assert self._edge_mask is not None
        mask = self._edge_mask.sigmoid() if self._apply_sigmoid else self._edge_mask
        ends = edge_index.long(), (one, other)
        pairs, wanted = (torch.minimum(u, v) * num_nodes + torch.maximum(u, v) for u, v in ends)
        pairs = torch.cat([pairs, pairs.new_full((1,), num_nodes**2)])  # a last one, so that there is one to be found
        known, place = torch.unique(pairs, return_inverse=True)
        means = scatter(torch.cat([mask, mask.new_ones(1)]), place, reduce="mean")
        found = torch.searchsorted(known, wanted)
        return torch.where((known[found] == wanted) & (one != other), means[found], 1.0)

    def on(self, matrix: Matrix, edge_index: Tensor, num_nodes: int) -> SparseMatrix:
        """A matrix with the mask on its entries; each node may have several rows, or several blocks of columns."""
        sparse = matrix if isinstance(matrix, SparseMatrix) else SparseMatrix(matrix.to_sparse_csr())
        row, column = sparse.places // (len(sparse) // num_nodes)
        factors = self.factors(row, column % num_nodes, edge_index, num_nodes)
        return sparse.with_values(sparse.values * factors.to(sparse.dtype))
