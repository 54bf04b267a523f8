"""What every model's configuration can do, so that one loop trains them all and one table lists them."""

from typing import Any, ClassVar, Protocol, TypeAlias

from torch import Tensor, nn
from torch_geometric.data import Data

from gcnsl.nn.sparse import SparseMatrix

Input: TypeAlias = Tensor | SparseMatrix


class ModelConfig(Protocol):
    """The hyper-parameters of a model: a frozen dataclass, a field each, with these two methods.

    ``model(*inputs)`` are then the logits of all nodes (n × C).
    """

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def prepare(self, data: Data, *, seed: int) -> tuple[Input, ...]:
        """What the model reads, made once from a graph: normalised features, Â and the like, on the CPU."""
        ...

    def build(self, data: Data) -> nn.Module:
        """The model for this graph, its weights drawn from torch's generator."""
        ...
