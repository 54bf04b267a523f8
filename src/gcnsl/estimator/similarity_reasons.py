"""Why a learned graph joins two nodes: the shared neighbours or the features that make them similar."""

from dataclasses import dataclass
from typing import Any

import torch

from gcnsl.estimator.node_classifier import NodeClassifier
from gcnsl.nn.gated_branches import ComparedRows
from gcnsl.structure.structural_features import FEATURE_NAMES

SHOWN = 5
"""Number of neighbours or features that are named."""


@dataclass(frozen=True)
class Reason:
    """A learned graph that joins two nodes, their similarity in it, and what this consists of.

    Attributes:
        graph: Name of the learned graph.
        similarity: Cosine of the two nodes.
        measure: ``"links"`` or ``"features"``: what is compared.
        parts: The parts of the similarity that are largest, by the id of a shared neighbour or the name of a feature.
        others: Number of further shared neighbours or features that have a part.
    """

    graph: str
    similarity: float
    measure: str
    parts: dict[Any, float]
    others: int

    def __str__(self) -> str:
        if not self.parts:  # Q can make different neighbours count alike
            return "no shared neighbours, but neighbours that count alike in the model"
        named = ", ".join(str(name) for name in self.parts)
        more = f" and {self.others:,} more" if self.others else ""
        what = "shared neighbours" if self.measure == "links" else "features"
        return f"{what} {named}{more}"


def feature_names(classifier: NodeClassifier, columns: int) -> list[str]:
    """The names of the features that the model reads."""
    if classifier.fitted_.prepared.features.structure is not None:
        return list(FEATURE_NAMES)
    return classifier.graph_.get("feature_names") or [f"feature {column}" for column in range(columns)]


def node_name(classifier: NodeClassifier, node: int) -> Any:
    """The id of a node, or its number if nodes have no ids."""
    return node if classifier.node_ids_ is None else classifier.node_ids_[node : node + 1].tolist()[0]


def reason(classifier: NodeClassifier, compared: ComparedRows, node: int, other: int, similarity: float) -> Reason:
    """Say what the similarity of two nodes consists of."""
    parts = compared.parts(node, other).cpu()
    if compared.measure == "links":
        shared = (compared.row(node) != 0) & (compared.row(other) != 0)
        # with both directions, A has two columns for each node
        parts = torch.where(shared.cpu(), parts, 0.0).view(-1, len(classifier.y_)).sum(dim=0)
    order = parts.argsort(descending=True, stable=True)[: int((parts > 0).sum())].tolist()

    def name(column: int) -> Any:
        if compared.measure == "links":
            return node_name(classifier, column)
        return feature_names(classifier, len(parts))[column]

    named = {name(column): float(parts[column]) for column in order[:SHOWN]}
    return Reason(compared.name, similarity, compared.measure, named, len(order) - len(order[:SHOWN]))
