"""What is tried: methods with hyper-parameters, in order of cost; facts of the graph decide which."""

from __future__ import annotations

import hashlib
import json
import statistics
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from torch_geometric.data import Data

from gcnsl.methods import Method, find_method
from gcnsl.sparse import pairs_in_two_steps, stored_entries

if TYPE_CHECKING:
    from gcnsl.auto.journal import Fit

MANY_PAIRS = 3e7
"""With more pairs of nodes two steps apart than this, methods that store them are left out."""
PER_ENTRY = {
    "label-propagation": 0.08,
    "logistic": 2.0,
    "boosted-trees": 3.0,
    "twins": 0.7,
    "mlp": 0.07,
    "gcn-sl-plus": 2.4,
    "linkx": 0.2,
    "sage": 0.17,
    "fsgnn": 1.7,
    "gcn": 0.15,
    "h2gcn-2": 6.0,
    "gpr-gnn": 0.14,
    "acm-gcn": 0.4,
    "dir-gcn": 1.2,
}
"""Seconds of one core for each million of features and edges: preparation, one epoch or stage, and a prediction, on a
graph of 20,000 nodes with 64 features and 20 neighbours."""
FIXED = 0.1
"""Seconds that a fit takes on any graph."""
DEEP_LAYERS, DEEP = 5, 6.0
"""From so many layers on, a fit takes so many times as long."""
_DEEP = {"num_layers": 5, "hidden_channels": 128, "norm": "batch", "dropout": 0.3, "drop_features": False}


@dataclass(frozen=True)
class Candidate:
    """A method with some hyper-parameters, and a name to show.

    Two candidates are equal if they train the same model: whatever their names, and whether or not an option is given
    that has its default value.
    """

    name: str = field(compare=False)
    method: str
    options: dict[str, Any] = field(default_factory=dict, compare=False)
    key: str = field(init=False)

    def __post_init__(self) -> None:
        # With all options, as what is a default today may be another value in the next version.
        text = json.dumps([self.method, self.resolved.options()], sort_keys=True)
        object.__setattr__(self, "key", hashlib.sha256(text.encode()).hexdigest()[:16])

    @cached_property
    def resolved(self) -> Method:
        """The method with these hyper-parameters."""
        return find_method(self.method).with_options(**self.options)


def portfolio(graph: Data) -> list[Candidate]:
    """The candidates for a graph, each with defaults from its literature, cheap ones first."""
    left_out = set() if graph.num_features else {"mlp"}
    if pairs_in_two_steps(graph.edge_index, graph.num_nodes) > MANY_PAIRS:
        left_out.add("h2gcn-2")
    entries = _entries(directed="arc_index" in graph)
    return [
        Candidate(", ".join(filter(None, (find_method(method).title, variant))), method, options)
        for method, variant, options in entries
        if method not in left_out
    ]


def _entries(*, directed: bool) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Methods, what is special about them in a word, and options."""
    along = {"direction": "out" if directed else "undirected"}
    yield "label-propagation", "", {}
    yield "logistic", "", {}
    yield "boosted-trees", "", {}
    yield "twins", "", along
    yield "mlp", "", {}
    yield "gcn-sl-plus", "", {}
    yield "linkx", "", along
    yield "sage", "deep", _DEEP
    yield "fsgnn", "", along
    yield "gcn", "", {}
    yield "sage", "", {}
    if directed:
        yield "gcn-sl-plus", "undirected", {"direction": "undirected"}
        yield "linkx", "undirected", {"direction": "undirected"}
        yield "fsgnn", "undirected", {"direction": "undirected"}
        yield "sage", "out-edges", along
    yield "h2gcn-2", "", {}
    yield "gcn", "deep", {**_DEEP, "residual": True}
    yield "gpr-gnn", "", {}
    yield "acm-gcn", "", {}
    if directed:
        yield "dir-gcn", "", {}


class FitCosts:
    """Estimates for a graph.

    The time grows with the number of features and edges (:data:`PER_ENTRY`), and is multiplied by a factor of the
    machine, the median over the finished fits.
    """

    def __init__(self, graph: Data) -> None:
        self._entries: float = (stored_entries(graph.x) + graph.num_edges) / 1e6

    def least_seconds(self, candidate: Candidate, fits: Iterable[Fit]) -> float:
        """The time that the shortest fit of a candidate should take; 0 before the first fit is finished."""
        ratios = [fit.least_seconds / self._usual(fit.candidate) for fit in fits if fit.fold == 0]
        return statistics.median(ratios) * self._usual(candidate) if ratios else 0.0

    def _usual(self, candidate: Candidate) -> float:
        factor = PER_ENTRY[candidate.method] * (DEEP if candidate.options.get("num_layers", 0) >= DEEP_LAYERS else 1.0)
        return FIXED + factor * self._entries
