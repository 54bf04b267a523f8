"""Small made-up package indexes, and the graphs of them."""

import json

import numpy as np
import scipy.sparse as sp
from tools.debian_graph.build import PackageGraph, Rule, build
from tools.debian_graph.index import parse_index

from gcnsl.datasets.loading import load_debian

EVERYTHING = Rule(
    sections=(),
    most_needed_by=None,
    one_per_source=False,
    word_packages=1,
    word_share=1.0,
    words=1,
    best_connected=None,
)


def stanza(name, section="libs", summary="alpha beta", **fields):
    lines = [f"Package: {name}", f"Section: {section}", f"Description: {summary}"]
    return "\n".join(lines + [f"{field.replace('_', '-')}: {value}" for field, value in fields.items()])


def index_of(*stanzas):
    return {package.name: package for package in parse_index("\n\n".join(stanzas) + "\n")}


def graph_of(*stanzas, rule=EVERYTHING):
    return build(index_of(*stanzas), rule)


def edges_by_name(graph):
    return {(graph.packages[u], graph.packages[v]) for u, v in graph.edges}


def stored_graph(path):
    """The graph in a file, and its provenance."""
    data = load_debian(path)
    edges = data.edge_index.T.numpy()
    texts = data.class_names, data.feature_names, data.node_ids.tolist()
    with np.load(path) as arrays:
        provenance = json.loads(str(arrays["provenance"].astype(str)))
    return PackageGraph(sp.csr_array(data.x), edges[edges[:, 0] < edges[:, 1]], data.y.numpy(), *texts), provenance


def assert_same_graph(one, other):
    assert (one.x != other.x).nnz == 0
    np.testing.assert_array_equal(one.edges, other.edges)
    np.testing.assert_array_equal(one.y, other.y)
    assert one[3:] == other[3:]
