import os
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from tools.debian_graph.__main__ import read_indexes
from tools.debian_graph.build import Rule, build, write_npz
from tools.debian_graph.index import dependencies

from gcnsl.datasets.loading import BUNDLED_FILE
from gcnsl.errors import InputError

from .cases import assert_same_graph, edges_by_name, graph_of, index_of, stanza, stored_graph


def test_edges_join_what_needs_with_what_is_needed_once():
    graph = graph_of(
        stanza("a", "games", Depends="b (>= 1), c | d", Recommends="b"),
        stanza("b", Depends="a"),
        stanza("c"),
        stanza("d"),
        stanza("e", Source="a", Depends="a"),
    )
    assert graph.packages == ["a", "b", "c"]
    assert edges_by_name(graph) == {("a", "b"), ("a", "c")}
    assert [graph.class_names[c] for c in graph.y] == ["games", "libs", "libs"]


NAMES = [f"p{i:02}" for i in range(24)]
WORDS = ["red", "green", "blue", "fast", "small", "the"]


@st.composite
def made_up_index(draw):
    stanzas = []
    for name in NAMES:
        needs = draw(st.lists(st.sampled_from(NAMES), max_size=4))
        words = draw(st.lists(st.sampled_from(WORDS), max_size=4))
        section = draw(st.sampled_from(["libs", "games", "doc"]))
        source = draw(st.sampled_from(NAMES[:12] + [name] * 12))
        stanzas.append(stanza(name, section, " ".join(words), Source=source, Depends=", ".join(needs)))
    return stanzas


@settings(max_examples=80, deadline=None)
@given(made_up_index(), st.randoms(use_true_random=False))
def test_the_graph_of_any_index_keeps_the_rule(stanzas, random):
    """Each condition of the rule, told again on packages by name, with networkx for the components."""
    rule = Rule(("libs", "games"), 1, 3, True, 2, 0.9, 1, 5)
    packages = index_of(*stanzas)
    try:
        graph = build(packages, rule)
    except InputError:
        reject()
    needs = dependencies(packages)
    pairs = {tuple(sorted((u, v))) for u in graph.packages for v in needs[u] if v in graph.packages}
    assert edges_by_name(graph) == pairs
    assert nx.is_connected(nx.Graph(pairs))
    assert set(graph.packages) == {name for pair in pairs for name in pair}
    assert len({(packages[n].source, packages[n].section) for n in graph.packages}) == len(graph.packages)
    assert all(sum(n in needed for needed in needs.values()) <= 3 for n in graph.packages)
    assert np.bincount(graph.y).max() <= 5
    for row, name in zip(graph.x.toarray(), graph.packages, strict=True):
        mine = {graph.words[j] for j in np.flatnonzero(row)}
        assert mine
        assert mine == set(packages[name].summary.split()) & set(graph.words)
    shuffled = stanzas.copy()
    random.shuffle(shuffled)
    assert_same_graph(graph_of(*shuffled, rule=rule), graph)


def test_the_bundled_graph_can_be_built_again():
    """With the index it was built from at hand (GCNSL_DEBIAN_INDEX, or apt's copy of it)."""
    named = os.environ.get("GCNSL_DEBIAN_INDEX")
    copies = Path("/var/lib/apt/lists").glob("*_debian_dists_bookworm_main_binary-amd64_Packages*")
    paths = [Path(named)] if named else sorted(copies)
    if not paths:
        pytest.skip("no Debian package index: set GCNSL_DEBIAN_INDEX to bookworm's main/binary-amd64/Packages")
    bundled, provenance = stored_graph(BUNDLED_FILE)
    packages, (index,) = read_indexes(paths[:1], [])
    if index["sha256"] != provenance["indexes"][0]["sha256"]:
        pytest.skip("the Debian package index here is of another date than the bundled graph's")
    assert_same_graph(build(packages), bundled)


def test_the_bundled_file_is_written_again_byte_for_byte(tmp_path):
    """On another day and another machine than the first time."""
    write_npz(tmp_path / "again.npz", *stored_graph(BUNDLED_FILE))
    assert (tmp_path / "again.npz").read_bytes() == BUNDLED_FILE.read_bytes()
