"""The names of methods, rows and graphs in tables, figures and texts."""

from gcnsl.datasets.benchmarks import synthetic_homophily
from gcnsl.methods import METHODS

_METHODS = {name: method.title for name, method in METHODS.items()} | {"sc": "SC", "esc": "ESC", "esc-anch": "ESC-ANCH"}
_ROWS = {
    "original": "original graph",
    "initial A*": "A* before training",
    "gcn-sl-cc A*": "A* learned by GCN-SL_cc",
    "gcn-sl-cc degree": "neighbours in the learned A*",
    "nlgnn": "learned by NLGNN",
}
_PARTS = {
    "-neighbours": "without the head on neighbours",
    "-contrast": "without the contrastive term",
    "-structure": "without the structure branch",
    "-links": "without head and branch",
    "-directions": "without directions",
}
_GRAPHS = {
    "cornell-geomgcn": "Cornell (Geom-GCN's)",
    "chameleon-filtered": "Filtered Chameleon",
    "squirrel-filtered": "Filtered Squirrel",
}
_SPLITS = {
    "random": "random splits",
    "geom-gcn": "Geom-GCN's splits",
    "stored": "the graph's own splits",
    "usual": "each graph's usual splits",
    "none": "",
}


def row_label(row: str, experiment: str = "accuracy") -> str:
    """The name of a table's row; ``_`` begins a subscript."""
    if experiment == "homophily":
        graph, _, featured = row.partition(", ")
        return _ROWS.get(graph, graph) + (", nodes with features" if featured else "")
    if experiment == "depth":
        method, _, depth = row.rpartition("-")
        return f"{_METHODS.get(method, method)}, " + (f"{depth} layers" if method == "gcn" else f"K = {depth}")
    method, _, variant = row.partition(" ")
    variant = _PARTS.get(variant) or variant.replace("+", " and ").replace("neither", "neither A nor A*")
    return _METHODS.get(method, method) + (f", {variant}" if variant else "")


def column_label(column: str) -> str:
    """The name of a graph; a comma is followed by what is made of it, as in ``"squirrel, directed"``."""
    h = synthetic_homophily(column)
    if h is not None:
        return f"h = {h:.1f}" if h == round(h, 1) else f"h = {h:g}"
    graph, _, more = column.partition(", ")
    return _GRAPHS.get(graph, graph.capitalize()) + (f" ({more})" if more else "")


def graph_of(column: str) -> str:
    """The graph of a column, whatever is made of it."""
    return column.partition(",")[0]


def split_label(split: str) -> str:
    """The name of a kind of split."""
    return _SPLITS.get(split, split)
