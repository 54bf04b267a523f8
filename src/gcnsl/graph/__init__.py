"""The one place where a graph is checked and repaired.

Whatever a graph comes from, the result is a ``torch_geometric.data.Data`` that the rest of the package can trust:
finite float32 features, simple undirected edges, labels in range, masks that are disjoint and n × runs.
"""

from gcnsl.graph.checks import UNLABELLED, GraphWarning
from gcnsl.graph.edges import EdgeReport, simple_undirected
from gcnsl.graph.homophily import adjusted_homophily, edge_homophily, node_homophily
from gcnsl.graph.sources import from_arrays, from_data, from_networkx, from_scipy
from gcnsl.graph.summary import GraphSummary, summarize
from gcnsl.graph.tables import from_tables

__all__ = [
    "UNLABELLED",
    "EdgeReport",
    "GraphSummary",
    "GraphWarning",
    "adjusted_homophily",
    "edge_homophily",
    "from_arrays",
    "from_data",
    "from_networkx",
    "from_scipy",
    "from_tables",
    "node_homophily",
    "simple_undirected",
    "summarize",
]
