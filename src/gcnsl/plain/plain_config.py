"""The hyper-parameters of the models that are not neural, declared as in :mod:`gcnsl.nn.config`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from gcnsl.nn.config import Direction, FeatureNorm, ModelConfig, Standardize
from gcnsl.options import ALL, Log, OneOf, Steps, option, redeclared


@dataclass(frozen=True)
class VotesConfig(ModelConfig):
    """The configuration of a model that does not read the features, so that nothing needs to be done to them."""

    feature_norm: ClassVar[FeatureNorm] = "none"  # type: ignore[misc]  # it is no option here
    standardize: ClassVar[Standardize] = "never"  # type: ignore[misc]


@dataclass(frozen=True)
class LabelPropagationConfig(VotesConfig, model="gcnsl.plain.class_votes:LabelPropagation"):
    """Hyper-parameters of :class:`LabelPropagation`."""

    uses: ClassVar[frozenset[str]] = frozenset({"weights"})

    alpha: float = option(
        0.9,
        "How much of a node's scores comes from its neighbours in each step.",
        above=0,
        most=1,
        search=Steps(0.1, 1.0, 0.05),
    )


@dataclass(frozen=True)
class TwinsConfig(VotesConfig, model="gcnsl.plain.class_votes:Twins"):
    """Hyper-parameters of :class:`Twins`."""

    direction: Direction = option(
        "out",
        "What is compared, if edges have directions: out-arcs, in-arcs, or all neighbours (undirected).",
        search=ALL,
    )


@dataclass(frozen=True)
class NeighbourColumnsConfig(ModelConfig, model="gcnsl.plain.neighbour_columns:NeighbourColumns"):
    r"""How the columns are made: :math:`X, \hat A X, \hat A^2 X, \dots`, degrees and a spectral embedding of A.

    :math:`\hat A = D^{-1} A` has no loops, so that a row of :math:`\hat A X` is the mean over a node's neighbours. In a
    graph with directions, means along out-arcs and along in-arcs are further columns.
    """

    feature_norm: FeatureNorm = redeclared(ModelConfig, "feature_norm", "none")
    hops: int = option(
        2, "Means over neighbours are taken up to so many times in a row (K).", least=0, most=8, search=Steps(0, 4)
    )
    direction: Literal["undirected", "both"] = option(
        "both", "Whether means are also taken along out-arcs and in-arcs (both), if edges have directions.", search=ALL
    )


@dataclass(frozen=True)
class LogisticConfig(NeighbourColumnsConfig, model="gcnsl.plain.logistic:Logistic"):
    """Hyper-parameters of :class:`Logistic`."""


@dataclass(frozen=True)
class BoostedTreesConfig(NeighbourColumnsConfig, model="gcnsl.plain.boosted_trees:BoostedTrees"):
    """Hyper-parameters of :class:`BoostedTrees`."""

    tells_kinds: ClassVar[bool] = True
    labels: bool = option(True, "Whether the shares of known labels among a node's neighbours are columns.", search=ALL)
    components: int = option(
        64,
        "If X has more columns, it is reduced to so many by a truncated singular value decomposition.",
        least=1,
        search=OneOf(16, 32, 64, 128),
    )
    trees: int = option(
        1000, "Maximum boosting rounds, each with a tree for every class; ten are an epoch.", least=1, most=10_000
    )
    learning_rate: float = option(0.05, "Share of each tree that is added.", above=0, most=1, search=Log(0.02, 0.2))
    leaves: int = option(8, "Largest number of leaves of a tree.", least=2, most=4096, search=OneOf(4, 8, 16, 31))
    leaf_nodes: int = option(10, "Smallest number of training nodes in a leaf.", least=1, search=OneOf(2, 5, 10, 20))
