"""Small made-up package indexes, and the graphs of them."""

import numpy as np
from tools.debian_graph.build import Rule, build
from tools.debian_graph.index import parse_index

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


def assert_same_graph(one, other):
    assert (one.x != other.x).nnz == 0
    np.testing.assert_array_equal(one.edges, other.edges)
    np.testing.assert_array_equal(one.y, other.y)
    assert one[3:] == other[3:]
