"""The least time that a candidate should take, judged by finished ones: none is begun that can't end in time."""

from __future__ import annotations

import statistics
from collections.abc import Iterable

from torch_geometric.data import Data

from gcnsl.auto.candidates import Candidate
from gcnsl.auto.journal import FoldFit
from gcnsl.sparse import stored_entries

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


class FitCosts:
    """Estimates for a graph.

    The time grows with the number of features and edges (:data:`PER_ENTRY`), and is multiplied by a factor of the
    machine, the median over the finished fits.
    """

    def __init__(self, graph: Data) -> None:
        self._entries: float = (stored_entries(graph.x) + graph.num_edges) / 1e6

    def least_seconds(self, candidate: Candidate, fits: Iterable[FoldFit]) -> float:
        """The time that the shortest fit of a candidate should take; 0 before the first fit is finished."""
        ratios = [fit.least_seconds / self._usual(fit.candidate) for fit in fits if fit.fold == 0]
        return statistics.median(ratios) * self._usual(candidate) if ratios else 0.0

    def _usual(self, candidate: Candidate) -> float:
        factor = PER_ENTRY[candidate.method] * (DEEP if candidate.options.get("num_layers", 0) >= DEEP_LAYERS else 1.0)
        return FIXED + factor * self._entries
