"""Residual blocks around any graph convolution, which train at any depth."""

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from gcnsl.nn.graph_model import FeatureLinear, dropout
from gcnsl.sparse import Matrix


class ResidualBlocks(nn.Module):
    r"""A linear map of X, blocks of constant width around a convolution, and a linear map to the classes.

    .. math::
        H^{(0)} = X W_0 + b_0, \qquad
        H^{(l)} = H^{(l-1)} + \operatorname{dropout}\operatorname{ReLU}\operatorname{LayerNorm}
        \bigl(\operatorname{conv}^{(l)}(H^{(l-1)}) + H^{(l-1)} W^{(l)}\bigr), \qquad Z = H^{(L)} W_1 + b_1

    Luo et al. (2024) found that convolutions with a linear residual, a normalisation and dropout rival graph
    transformers; the identity keeps what the blocks before have found.

    Args:
        conv: Makes the convolution of a block, width → width.
        width: Width of the blocks.
        count: Number of blocks (L).
        rate: Rate of dropout.
        skip: Whether a block adds :math:`H W`; it need not if the convolution does.

    Shapes:
        x (n × in_channels), dense or sparse; what the convolutions read of the graph → n × out_channels.
    """

    __call__: Callable[..., Tensor]

    def __init__(
        self,
        conv: Callable[[], nn.Module],
        in_channels: int,
        width: int,
        out_channels: int,
        *,
        count: int,
        rate: float,
        skip: bool = True,
    ) -> None:
        super().__init__()
        self.rate = rate
        self.embed, self.head = FeatureLinear(in_channels, width), FeatureLinear(width, out_channels)
        self.convs = nn.ModuleList(conv() for _ in range(count))
        self.skips = nn.ModuleList(FeatureLinear(width, width, bias=False) for _ in range(count * skip))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(count))

    def forward(self, x: Matrix, *graph: Any) -> Tensor:
        """Logits of every node (n × out_channels)."""
        h: Tensor = self.embed(x)
        for block, (conv, norm) in enumerate(zip(self.convs, self.norms, strict=True)):
            new = conv(h, *graph) + self.skips[block](h) if self.skips else conv(h, *graph)
            h = h + dropout(norm(new).relu(), self.rate, training=self.training)
        logits: Tensor = self.head(h)
        return logits
