"""Makes a checked graph from tables, arrays, SciPy, networkx or PyG.

The result is a ``torch_geometric.data.Data`` with finite float32 features, simple undirected edges (and beside them the
directions and weights that were given), class numbers as labels, and disjoint masks with one column per run.
"""

from typing import TYPE_CHECKING

from gcnsl.lazy import lazy

if TYPE_CHECKING:
    from gcnsl.checks import UNLABELLED
    from gcnsl.graph.checked_graph import Graph
    from gcnsl.graph.column_encoder import ColumnEncoder, encode_columns
    from gcnsl.graph.column_report import ColumnSummary
    from gcnsl.graph.columns import Columns
    from gcnsl.graph.edges import EdgeReport, simple_undirected
    from gcnsl.graph.graph_tables import from_tables
    from gcnsl.graph.labels import encode_labels, read_labels
    from gcnsl.graph.masks import GraphWarning, draw_validation, split_count, split_masks
    from gcnsl.graph.sources import from_arrays, from_data, from_networkx, from_scipy, to_networkx
    from gcnsl.graph.summary import (
        GraphSummary,
        adjusted_homophily,
        arc_homophily,
        edge_homophily,
        node_homophily,
        summarize,
    )
else:
    __getattr__, __dir__ = lazy(__name__)

__all__ = [
    "UNLABELLED",
    "ColumnEncoder",
    "ColumnSummary",
    "Columns",
    "EdgeReport",
    "Graph",
    "GraphSummary",
    "GraphWarning",
    "adjusted_homophily",
    "arc_homophily",
    "draw_validation",
    "edge_homophily",
    "encode_columns",
    "encode_labels",
    "from_arrays",
    "from_data",
    "from_networkx",
    "from_scipy",
    "from_tables",
    "node_homophily",
    "read_labels",
    "simple_undirected",
    "split_count",
    "split_masks",
    "summarize",
    "to_networkx",
]
