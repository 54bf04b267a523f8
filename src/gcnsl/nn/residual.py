"""What GCN, GraphSAGE and GAT share: a chain of convolutions, or residual blocks, which train at any depth."""

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar

from torch import Tensor, nn

from gcnsl.nn.graph_model import FeatureLinear, GraphModel, drop_entries, dropout
from gcnsl.sparse import Matrix, SparseMatrix

NORMS: dict[str, type[nn.Module]] = {"none": nn.Identity, "batch": nn.BatchNorm1d, "layer": nn.LayerNorm}


class ResidualBlocks(nn.Module):
    r"""A linear map of X, blocks of constant width around a convolution, and a linear map to the classes.

    .. math::
        H^{(0)} = X W_0 + b_0, \qquad
        H^{(l)} = H^{(l-1)} + \operatorname{dropout}\operatorname{ReLU}\operatorname{LayerNorm}
        \bigl(\operatorname{conv}^{(l)}(H^{(l-1)}) + H^{(l-1)} W^{(l)}\bigr), \qquad Z = H^{(L)} W_1 + b_1

    Luo et al. (2024) found that convolutions with a linear residual, a normalisation and dropout rival graph
    transformers; the identity keeps what the blocks before have found. A convolution (width → width) that has a linear
    residual of its own needs no ``skip``.

    Shapes:
        x (n × in_channels), dense or sparse; what the convolutions read of the graph → n × out_channels.
    """

    __call__: Callable[..., Tensor]

    def __init__(
        self, conv: Callable[[], nn.Module], in_channels: int, width: int, out_channels: int, config: Any, *, skip: bool
    ) -> None:
        super().__init__()
        self.rate, count = config.dropout, config.blocks
        self.embed, self.head = FeatureLinear(in_channels, width), FeatureLinear(width, out_channels)
        self.convs = nn.ModuleList(conv() for _ in range(count))
        self.skips = nn.ModuleList(FeatureLinear(width, width, bias=False) for _ in range(count * skip))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(count))

    def forward(self, x: Matrix, *graph: Any) -> Tensor:
        """Z (n × out_channels)."""
        h: Tensor = self.embed(x)
        for block, (conv, norm) in enumerate(zip(self.convs, self.norms, strict=True)):
            new = conv(h, *graph) + self.skips[block](h) if self.skips else conv(h, *graph)
            h = h + dropout(norm(new).relu(), self.rate, training=self.training)
        logits: Tensor = self.head(h)
        return logits


class Convolutions(GraphModel):
    """A chain of convolutions with normalisation, ReLU and dropout between them, or :class:`ResidualBlocks`."""

    convolution: ClassVar[type[nn.Module]]
    """Made with the widths of its input and output and a number of matrices (n × n each), called with H and these."""
    keeps_itself: ClassVar[bool] = False
    """Whether the convolution adds a linear map of H."""

    def __init__(
        self, in_channels: int, hidden_channels: int, out_channels: int, *, num_relations: int = 1, **options: Any
    ) -> None:
        super().__init__(hidden_channels=hidden_channels, **options)
        config, width, own = self.config, hidden_channels, not self.keeps_itself and self.config.self_loops
        conv = partial(self.convolution, relations=num_relations + (own and num_relations > 1))
        if config.blocks:
            sizes = in_channels, width, out_channels
            self.blocks = ResidualBlocks(lambda: conv(width, width), *sizes, config, skip=not self.keeps_itself)
            return
        widths = [in_channels, *[width] * (config.num_layers - 1), out_channels]
        residual = not self.keeps_itself and config.residual
        self.convs = nn.ModuleList(conv(*pair) for pair in pairwise(widths))
        self.skips = nn.ModuleList(FeatureLinear(*pair, bias=False) for pair in pairwise(widths) if residual)
        self.norms = nn.ModuleList(NORMS[config.norm](each) for each in widths[1:-1])

    def logits(self, x: Matrix, *adjacencies: SparseMatrix) -> Tensor:
        """Logits of every node (n × C)."""
        if self.config.blocks:
            return self.blocks(x, *adjacencies)
        rate = self.config.dropout
        h: Any = drop_entries(x, rate, training=self.training and self.config.drop_features)
        for layer, conv in enumerate(self.convs):
            if layer:
                h = dropout(self.norms[layer - 1](h).relu(), rate, training=self.training)
            h = conv(h, *adjacencies) + self.skips[layer](h) if self.skips else conv(h, *adjacencies)
        logits: Tensor = h
        return logits
