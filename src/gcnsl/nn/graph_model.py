"""What all models share: how they are declared and called, layers for dense and sparse features, and fast dropout."""

from __future__ import annotations

import functools
import inspect
import textwrap
from collections.abc import Callable
from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, get_type_hints
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.data import Data
from torch_geometric.nn.inits import reset
from torch_geometric.utils import to_edge_index

from gcnsl.checks import check_whole
from gcnsl.errors import InputError
from gcnsl.graph.edges import arcs_and_weights, check_edges, edges_by_relation, simple_undirected
from gcnsl.nn.config import Folder, ModelConfig, Precomputed
from gcnsl.nn.edge_mask import EdgeMask
from gcnsl.sparse import Matrix, SparseMatrix, fastest_form

Model = TypeVar("Model", bound=type[nn.Module])
CHANNELS = {
    "in_channels": "Number of features per node (d).",
    "out_channels": "Number of classes (C).",
    "num_nodes": "Number of nodes of the training graph; new nodes are seen through their links to these.",
    "num_relations": "Number of kinds of edges (R), each with weights of its own; the call then takes ``edge_type``.",
}
"""What a constructor takes besides hyper-parameters, all of them whole numbers >= 1."""
_KEPT: WeakKeyDictionary[nn.Module, Any] = WeakKeyDictionary()
"""For each model the edges that it read last, and what it made of them; no part of a copy or a file."""
_STEPS = 1 << 16
"""The values of the 16 random bits that decide on an entry in dropout."""


class GraphModel(nn.Module):
    """A model that is :func:`declared_by` a configuration, which calls its class methods and explains them.

    The forward pass returns logits: the Z of a model's equations before the softmax.
    """

    declared: ClassVar[type[ModelConfig]] = ModelConfig
    in_channels: int
    out_channels: int
    reads_edges = True

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.config: Any = self.declared(**options)
        self._edge_mask = EdgeMask()

    def forward(
        self,
        x: Matrix,
        edge_index: Matrix | None = None,
        edge_weight: Matrix | None = None,
        *others: Matrix,
        edge_type: Tensor | None = None,
        **options: Any,
    ) -> Tensor:
        """Logits of every node (n × C).

        Args:
            x: Features (n × d), dense or sparse.
            edge_index: Node numbers of the edges (2 × E), or a sparse ``adj_t`` (n × n). What the model makes of them
                is kept for the next call. To save time, give what :meth:`prepared` makes of x and of them instead.
            edge_weight: A positive weight for each edge (E).
            others, options: Further prepared inputs, and further arguments of :meth:`logits`.
            edge_type: The kind of each edge (E), 0 to R - 1, if the model was built for several relations.
        """
        weight = next(self.parameters(), None)
        if weight is not None:
            check_features(x, self.in_channels, weight.dtype)
            if not len(x):
                return (0 * weight.sum()).expand(0, self.out_channels)
            if edge_index is None and self.reads_edges:
                raise InputError("edge_index is missing: give the edges (2 × E), or what prepared() makes of them")
        if not (edge_index is None or isinstance(edge_index, Tensor | SparseMatrix)):
            raise InputError(f"edge_index is a {type(edge_index).__name__}: give a torch.Tensor (2 × E)")
        if not isinstance(edge_index, Tensor) or _is_prepared(edge_index, len(x)):
            given = [edge_index, edge_weight, *others]
            while given and given[-1] is None:
                given.pop()
            return self.logits(x, *given, **options)
        if others:
            raise InputError(f"a model takes x, edge_index and edge_weight, but {len(others)} more were given")
        prepare = self.prepared
        if torch.compiler.is_compiling():  # its tracer would follow the work into SciPy
            prepare = torch.compiler.disable(prepare)  # type: ignore[no-untyped-call]
        inputs = prepare(x, edge_index, edge_weight, edge_type)
        return self.logits(*(self.masked(edge_index, *inputs) if self._edge_mask.explain else inputs), **options)

    if TYPE_CHECKING:
        __call__ = forward  # for editors and type checkers

    def logits(self, *inputs: Any, **options: Any) -> Tensor:
        """Logits of every node (n × C), from prepared inputs."""
        raise NotImplementedError(f"{type(self).__name__} does not say how it computes logits")

    @torch.inference_mode(mode=False)  # whose tensors could not be used in training
    def prepared(
        self, x: Matrix, edge_index: Tensor, edge_weight: Any = None, edge_type: Any = None
    ) -> tuple[Matrix, ...]:
        """What ``model(*inputs)`` reads of a graph: x, sparse in the form with fast products, and what edges tell.

        As for :func:`gcnsl.from_arrays`, an edge leads from its first node to its second one. Instead of
        ``edge_index``, there may be PyTorch Geometric's ``adj_t`` (n × n, one of torch's sparse tensors).
        """
        n, wanted = len(x), getattr(self, "num_nodes", len(x))
        if n != wanted:
            raise InputError(f"x has {n} rows, but the model was built for num_nodes={wanted}")
        for name, each in {"edge_weight": edge_weight, "edge_type": edge_type}.items():
            if not (each is None or isinstance(each, Tensor)):
                raise InputError(f"{name} is a {type(each).__name__}: give a torch.Tensor, a number per edge")
        x = as_matrix(x)
        if edge_index.layout != torch.strided:
            if edge_index.shape != (n, n):
                raise InputError(f"edge_index has shape {tuple(edge_index.shape)}: give an adj_t of shape {(n, n)}")
            edges, edge_weight = to_edge_index(edge_index)
            edge_index = edges.flip(0)
        none, relations = torch.empty(0), getattr(self, "num_relations", 1)
        given = tuple(none if each is None else each.detach().cpu() for each in (edge_index, edge_weight, edge_type))
        kept = _KEPT.get(self)
        if kept is None or n != kept[0] or not all(map(_same, given, kept[1])):
            ends = check_edges(edge_index, n)
            if relations > 1 or edge_type is not None:
                _check_edge_type(edge_type, len(ends[0]), relations)
            graph = Data(edge_index=torch.from_numpy(simple_undirected(*ends, n)[0]), num_nodes=n)
            graph.update(arcs_and_weights(*ends, n, directed=True, weight=edge_weight))
            if relations > 1:
                weight = None if edge_weight is None else given[1].flatten().numpy()
                graph.update(edges_by_relation(graph, np.stack(ends), given[2].numpy(), relations, weight))
            kept = n, tuple(part.clone() for part in given), self.matrices(self.config, graph)
        _KEPT[self] = *kept[:2], tuple(_like(x, matrix) for matrix in kept[2])
        return x, *_KEPT[self][2]

    def masked(self, edge_index: Tensor, x: Matrix, *matrices: Any) -> tuple[Any, ...]:
        """Prepared inputs with the mask that an explainer has put on the edges."""
        return x, *(self._edge_mask.on(matrix, edge_index, len(x)) for matrix in matrices)

    @classmethod
    def matrices(cls, config: Any, graph: Data) -> tuple[Matrix, ...]:
        """What the model reads of a graph besides the features, on the CPU."""
        raise NotImplementedError(f"{cls.__name__} does not say what it reads of a graph")

    @classmethod
    def inputs(cls, config: Any, graph: Data, *, precomputed: Any, seed: int) -> tuple[Matrix, ...]:
        """X and the matrices."""
        return fastest_form(graph.x), *cls.matrices(config, graph)

    @classmethod
    def precompute(cls, config: Any, graph: Data, *, seed: int, root: Folder = None) -> Precomputed | None:
        """Nothing."""

    @classmethod
    def from_state(cls, config: Any, plain: Any, tensors: dict[str, Tensor], graph: Data) -> Precomputed | None:
        """Nothing."""

    def reset_parameters(self) -> None:
        """Draw new weights."""
        for part in self.children():
            reset(part)


def declared_by(config: type[ModelConfig]) -> Callable[[Model], Model]:
    """Give a model's constructor the signature and the documentation that a configuration declares.

    ``**options`` stands for the hyper-parameters of the model that the constructor does not name itself.
    """

    def declare(model: Model) -> Model:
        plain_init, own = model.__init__, inspect.signature(model.__init__, eval_str=True)
        given = {name: each for name, each in own.parameters.items() if each.kind is not each.VAR_KEYWORD}
        declared, kinds = given.copy(), get_type_hints(config)
        for each in fields(config) if len(given) < len(own.parameters) else ():
            if each.name not in given and not each.metadata["of_inputs"]:
                kind = {"annotation": kinds[each.name], "default": each.default}
                declared[each.name] = inspect.Parameter(each.name, inspect.Parameter.KEYWORD_ONLY, **kind)
        signature = own.replace(parameters=list(declared.values()))

        @functools.wraps(plain_init)
        def checked_init(self: nn.Module, *values: Any, **named: Any) -> None:
            bound = signature.bind(self, *values, **named).arguments
            channels = {name: check_whole(name, bound[name], least=1) for name in CHANNELS if name in bound}
            config.check(**{name: bound[name] for name in config.names() if name in given and name in bound})
            plain_init(self, *values, **named)
            vars(self).update(channels)

        checked_init.__signature__ = signature  # type: ignore[attr-defined]
        model.__init__ = checked_init  # type: ignore[method-assign]
        model.declared = config  # type: ignore[attr-defined]
        meanings = CHANNELS | {option.name: option.meaning for option in config.described()}
        text, shapes, rest = inspect.cleandoc(model.__doc__ or "").partition("\nShapes:")
        text, _, arguments = text.partition("\nArgs:\n")
        lines = [line for line in arguments.splitlines() if line]
        for name in filter(meanings.__contains__, declared):
            lines += textwrap.wrap(f"{name}: {meanings[name]}", 110, initial_indent=" " * 4, subsequent_indent=" " * 8)
        listed = "\n".join(lines)
        model.__doc__ = f"{text.rstrip()}\n\nArgs:\n{listed}\n{shapes}{rest}"
        return model

    return declare


def _is_prepared(matrix: Tensor, n: int) -> bool:
    """Whether this is a matrix with a row for every node, or the ends of edges that GAT reads, and no edge_index."""
    dense = matrix.layout == torch.strided and matrix.is_floating_point()
    return matrix.dim() == 1 or (dense and len(matrix) == n)


def _same(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and one.dtype == other.dtype and one.equal(other)


def _check_edge_type(edge_type: Tensor | None, count: int, relations: int) -> None:
    """Refuse kinds of so many edges that a model for so many relations can't read."""
    if relations == 1:
        raise InputError("edge_type is given, but the model has one weight for all edges: build it with num_relations")
    is_whole = edge_type is not None and edge_type.shape == (count,) and not edge_type.is_floating_point()
    if edge_type is None or not is_whole or not ((edge_type >= 0) & (edge_type < relations)).all():
        raise InputError(f"edge_type must be a torch.Tensor of {count} whole numbers from 0 to {relations - 1}")


def _like(x: Matrix, matrix: Matrix) -> Matrix:
    """A matrix on the device of x; numbers that are not integers in its precision."""
    matrix = matrix.to(x.device)
    if not matrix.dtype.is_floating_point or matrix.dtype == x.dtype:
        return matrix
    return matrix.to(x.dtype) if isinstance(matrix, Tensor) else matrix.with_values(matrix.values.to(x.dtype))


def as_matrix(x: Matrix) -> Matrix:
    """One of torch's sparse tensors in the form with fast products; another matrix as it is."""
    return fastest_form(x.to_sparse_csr()) if isinstance(x, Tensor) and x.layout != torch.strided else x


def check_features(x: Any, in_channels: int, dtype: torch.dtype) -> Matrix:
    """The features of the nodes (n × in_channels), if a model with weights of this dtype can read them."""
    if not isinstance(x, Tensor | SparseMatrix):
        raise InputError(f"x is a {type(x).__name__}: give a torch.Tensor with a row for each node")
    if len(x.shape) != 2:
        raise InputError(f"x has shape {tuple(x.shape)}: give a row for each node (n × {in_channels})")
    if x.shape[1] != in_channels:
        raise InputError(f"x has {x.shape[1]} columns, but the model was built for in_channels={in_channels}")
    if x.dtype != dtype:
        raise InputError(f"x has dtype {x.dtype}, but the model's weights have {dtype}: call x.to({dtype})")
    return x


class FeatureLinear(nn.Linear):
    """X·W + b for a dense or sparse X (n × in_channels) → n × out_channels.

    Weights are drawn from Glorot's uniform distribution; the bias starts at 0. If W consists of several ``maps`` side
    by side, the weights of each are drawn separately.
    """

    __call__: Callable[..., Tensor]

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


class RelationalLinear(FeatureLinear):
    r""":math:`\sum_r \hat A_r X W_r`, a linear map for each relation (Schlichtkrull et al., 2018), of one or several.

    Shapes:
        x (n × in_channels), dense or sparse; Â_1, ..., Â_R (n × n each) → n × out_channels.
    """

    def __init__(self, in_channels: int, out_channels: int, relations: int = 1) -> None:
        super().__init__(in_channels, relations * out_channels, bias=False, maps=relations)

    def forward(self, x: Matrix, *adjacencies: SparseMatrix) -> Tensor:
        """The sum over the relations; X is mapped first, so that each Â is multiplied by few columns."""
        parts = super().forward(x).chunk(self.maps, dim=1)
        first, *others = (adjacency @ part for adjacency, part in zip(adjacencies, parts, strict=True))
        total: Tensor = sum(others, start=first)
        return total


def dropout(values: Tensor, rate: float, *, training: bool, in_place: bool = False) -> Tensor:
    """In training, set entries to zero with probability ``rate`` and scale the others to keep the expected value.

    On a CPU, torch draws a number from a Mersenne twister for every entry, which takes longer than all other work of a
    small model. Here a faster generator, seeded by torch's, draws 16 bits per entry. The rate is therefore rounded to a
    multiple of 1 / 65,536, and the entries that are kept are scaled according to the rounded rate. Of values that are
    changed ``in_place``, no derivative may be wanted.
    """
    if not training or rate == 0:
        return values
    if values.device.type != "cpu" or (torch.compiler.is_compiling() and not in_place):
        return functional.dropout(values, rate, inplace=in_place)
    number, seed = values.numel(), int(torch.randint(2**62, ()))
    drawn = torch.from_numpy(np.random.SFC64(seed).random_raw(-(-number // 4)).view(np.int16)[:number])
    kept, scale = (drawn >= _dropped_steps(rate) - _STEPS // 2).view(values.shape), scale_of_kept(values, rate)
    return values.mul_(kept).mul_(scale) if in_place else values * kept.to(values.dtype).mul_(scale)


def scale_of_kept(values: Tensor, rate: float) -> float:
    """The factor by which :func:`dropout` multiplies the entries of values that it keeps."""
    return 1 / (1 - rate) if values.device.type != "cpu" else _STEPS / (_STEPS - _dropped_steps(rate))


def _dropped_steps(rate: float) -> int:
    return min(round(rate * _STEPS), _STEPS - 1)


def drop_entries(x: Matrix, rate: float, *, training: bool) -> Matrix:
    """Dropout on the entries of X; for a sparse X on the stored entries only, because the others are 0 anyway."""
    if not training or rate == 0:
        return x  # a sparse matrix keeps what it has stored for its products
    if isinstance(x, SparseMatrix):
        return x.with_values(dropout(x.values, rate, training=training))
    return dropout(x, rate, training=training)
