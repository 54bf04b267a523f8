"""A linear map for dense or sparse features, the first layer of most models."""

from torch import Tensor, nn

from gcnsl.sparse import Matrix


class FeatureLinear(nn.Linear):
    """X·W + b for a dense or sparse X (n × in_channels) → n × out_channels.

    Weights are drawn from Glorot's uniform distribution; the bias starts at 0. If W consists of several ``maps`` side
    by side, the weights of each are drawn separately.
    """

    def __init__(self, in_channels: int, out_channels: int, *, bias: bool = True, maps: int = 1) -> None:
        self.maps = maps
        super().__init__(in_channels, out_channels, bias=bias)

    def reset_parameters(self) -> None:
        """Draw new weights."""
        for weight in self.weight.chunk(self.maps):
            nn.init.xavier_uniform_(weight)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, x: Matrix) -> Tensor:
        """X·W + b."""
        if isinstance(x, Tensor):
            return super().forward(x)
        product = x @ self.weight.T
        return product if self.bias is None else product + self.bias
