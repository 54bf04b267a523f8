"""The bundled graph against its data card, and the builder on small made-up indexes."""

import gzip
import hashlib
import lzma
import os
import re
import shutil
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gcnsl.datasets import load
from gcnsl.datasets.debian import BUNDLED_FILE, load_debian
from gcnsl.datasets.debian.__main__ import main, read_indexes
from gcnsl.datasets.debian.build import BUNDLED, FULL, STOP_WORDS, Rule, build
from gcnsl.datasets.debian.index import dependencies, parse_index, parse_release
from gcnsl.datasets.debian.storage import read_npz, write_npz
from gcnsl.errors import InputError
from gcnsl.graph import adjusted_homophily, edge_homophily, node_homophily

CARD = Path(__file__).parents[2] / "docs" / "debian.md"

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


# The bundled graph


def card_table(heading):
    """The rows of the first table under a heading of the card: first cell → the other cells."""
    section = re.split(r"^## ", CARD.read_text(encoding="utf-8"), flags=re.MULTILINE)
    text = next(part for part in section if part.startswith(heading))
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    return {row[0]: row[1:] for row in rows[2:]}


def test_the_bundled_graph_is_what_its_card_says():
    data = load_debian()
    degree = torch.bincount(data.edge_index[0], minlength=data.num_nodes)
    measured = {
        "nodes": f"{data.num_nodes:,}",
        "edges": f"{data.num_edges // 2:,}",
        "classes": str(len(data.class_names)),
        "words": str(data.num_features),
        "words of a node (least, mean, most)": "{:.0f}, {:.2f}, {:.0f}".format(
            *(float(f(data.x.sum(dim=1))) for f in (torch.min, torch.mean, torch.max))
        ),
        "degree (least, median, mean, most)": "{:.0f}, {:.0f}, {:.2f}, {:.0f}".format(
            *(float(f(degree.double())) for f in (torch.min, torch.median, torch.mean, torch.max))
        ),
        "nodes with one neighbour": str(int((degree == 1).sum())),
        "distinct bags of words": f"{len(data.x.unique(dim=0)):,}",
        "words that fewer than five nodes use": str(int((data.x.sum(dim=0) < 5).sum())),
        "edge homophily": f"{edge_homophily(data.edge_index, data.y):.4f}",
        "node homophily": f"{node_homophily(data.edge_index, data.y):.4f}",
        "adjusted homophily": f"{adjusted_homophily(data.edge_index, data.y):.4f}",
        "file": f"{BUNDLED_FILE.stat().st_size:,} bytes",
    }
    assert measured == {name: cells[0] for name, cells in card_table("Numbers").items()}


def test_the_bundled_classes_are_what_the_card_says():
    data = load_debian()
    source, target = data.y[data.edge_index]
    measured = {}
    for c, name in enumerate(data.class_names):
        ends = target[source == c]
        size = int((data.y == c).sum())
        measured[name] = [str(size), f"{len(ends) / size:.2f}", f"{float((ends == c).double().mean()):.2f}"]
    assert measured == card_table("Classes")
    assert tuple(data.class_names) == BUNDLED.sections


def test_the_bundled_provenance_is_on_the_card():
    (index,) = read_npz(BUNDLED_FILE)[1]["indexes"]
    card = CARD.read_text(encoding="utf-8")
    assert all(index[key] in card for key in ("release", "date", "path", "sha256"))
    assert load_debian().provenance == [", ".join(index.values())]


def test_the_bundled_file_is_small_and_holds_no_pickle():
    assert BUNDLED_FILE.stat().st_size < 300_000
    with np.load(BUNDLED_FILE, allow_pickle=False) as stored:
        assert all(stored[name].dtype.kind in "uS" for name in stored.files)


def test_the_bundled_graph_is_connected_and_named():
    data = load_debian()
    graph = nx.Graph(data.edge_index.T.tolist())
    assert len(graph) == data.num_nodes
    assert nx.is_connected(graph)
    assert data.node_ids.tolist() == sorted(set(data.node_ids.tolist()))
    assert data.feature_names == sorted(set(data.feature_names))
    assert not STOP_WORDS & set(data.feature_names)
    node = data.node_ids.tolist().index("0ad")
    assert data.class_names[data.y[node]] == "games"
    words = [data.feature_names[j] for j in torch.nonzero(data.x[node]).flatten()]
    assert words == ["game", "real", "strategy", "time"]  # of "Real-time strategy game of ancient warfare"


def test_the_bundled_graph_loads_without_a_network(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("no network is needed")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.delenv("GCNSL_DATA", raising=False)
    data = load("debian", runs=2)
    assert data.train_mask.shape == (data.num_nodes, 2)


def test_sparse_features_are_the_dense_ones():
    data = load_debian(sparse=True)
    assert data.x.layout == torch.sparse_csr
    torch.testing.assert_close(data.x.to_dense(), load_debian().x)


def test_the_bundled_graph_can_be_built_again():
    """With the index it was built from at hand (GCNSL_DEBIAN_INDEX, or apt's copy of it)."""
    named = os.environ.get("GCNSL_DEBIAN_INDEX")
    copies = Path("/var/lib/apt/lists").glob("*_debian_dists_bookworm_main_binary-amd64_Packages*")
    paths = [Path(named)] if named else sorted(copies)
    if not paths:
        pytest.skip("no Debian package index: set GCNSL_DEBIAN_INDEX to bookworm's main/binary-amd64/Packages")
    bundled, provenance = read_npz(BUNDLED_FILE)
    packages, (index,) = read_indexes(paths[:1], [])
    if index["sha256"] != provenance["indexes"][0]["sha256"]:
        pytest.skip("the Debian package index here is of another date than the bundled graph's")
    assert_same_graph(build(packages), bundled)


# Reading an index


def test_a_stanza_is_read():
    text = """\
Package: tool
Source: toolbox (1.2-3)
Section: contrib/games
Pre-Depends: dpkg (>= 1.15.6~)
Depends: liba (>= 1:2.0), libb:any | libc [amd64] <!nocheck>,
 libd
Recommends: libe
Suggests: libf
Provides: virtual (= 1), other
Description: a Game
 Depends: not this
 .
 the long text
"""
    (package,) = parse_index(text)
    assert package.name == "tool"
    assert package.source == "toolbox"
    assert package.section == "games"
    assert package.summary == "a Game"
    assert package.needs == (("dpkg",), ("liba",), ("libb", "libc"), ("libd",), ("libe",))
    assert package.provides == ("virtual", "other")


def test_a_package_without_source_is_its_own():
    assert index_of(stanza("tool"))["tool"].source == "tool"


def test_something_else_than_an_index_is_refused():
    with pytest.raises(InputError, match="stanza without a package"):
        list(parse_index("Dear reader,\n\nthis is a letter.\n"))


def needs_of(*stanzas):
    return dependencies(index_of(*stanzas))["tool"]


def test_the_first_alternative_that_exists_counts():
    assert needs_of(stanza("tool", Depends="gone | second | third"), stanza("second"), stanza("third")) == {"second"}
    assert needs_of(stanza("tool", Depends="gone")) == set()


def test_recommended_packages_count_as_needed_and_suggested_ones_do_not():
    others = [stanza(name) for name in ("one", "two", "three", "four")]
    tool = stanza("tool", Pre_Depends="one", Depends="two", Recommends="three", Suggests="four")
    assert needs_of(tool, *others) == {"one", "two", "three"}


def test_a_virtual_package_is_its_only_provider():
    tool = stanza("tool", Depends="virtual")
    assert needs_of(tool, stanza("real", Provides="virtual (= 1)")) == {"real"}
    assert needs_of(tool, stanza("real", Provides="virtual"), stanza("rival", Provides="virtual")) == set()
    assert needs_of(tool, stanza("virtual"), stanza("real", Provides="virtual")) == {"virtual"}


def test_packages_of_the_same_source_do_not_count():
    tool = stanza("tool", Source="box", Depends="data | other")
    assert needs_of(tool, stanza("data", Source="box"), stanza("other")) == set()


# Building a graph


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


def test_features_are_the_words_of_the_summary():
    needing = stanza("a", summary="The C++ tool, for GTK+ 3 (X11)", Depends="b")
    graph = graph_of(needing, stanza("b", summary="Tool tool"))
    assert graph.words == ["c++", "gtk+", "tool", "x11"]
    np.testing.assert_array_equal(graph.x.toarray(), [[1, 1, 1, 1], [0, 0, 1, 0]])


def test_rare_and_common_words_are_dropped_and_so_are_packages_left_without():
    summaries = ["shared once", "shared twice", "shared twice", "shared"]
    names = "abcd"
    stanzas = [stanza(n, summary=s, Depends="b") for n, s in zip(names, summaries, strict=True)]
    graph = graph_of(*stanzas, rule=replace(EVERYTHING, word_packages=2, word_share=0.9))
    assert graph.words == ["twice"]
    assert graph.packages == ["b", "c"]


def test_words_are_counted_in_what_may_become_a_node_only():
    """A word of ten packages of a section that is left out is still a rare one."""
    stanzas = [stanza("a", summary="good plain", Depends="b"), stanza("b", summary="good")]
    outside = [stanza(f"doc{i}", "doc", summary="plain") for i in range(10)]
    graph = graph_of(*stanzas, *outside, rule=replace(EVERYTHING, sections=("libs",), word_packages=2))
    assert graph.words == ["good"]


def test_only_the_largest_component_is_left():
    graph = graph_of(stanza("a", Depends="b"), stanza("b"), stanza("c", Depends="d, e"), stanza("d"), stanza("e"))
    assert graph.packages == ["c", "d", "e"]


def test_sections_are_the_ones_asked_for_in_that_order():
    stanzas = [stanza("a", "libs", Depends="b, c"), stanza("b", "games"), stanza("c", "doc")]
    graph = graph_of(*stanzas, rule=replace(EVERYTHING, sections=("games", "sound", "libs")))
    assert graph.class_names == ["games", "libs"]
    assert graph.packages == ["a", "b"]
    assert graph.y.tolist() == [1, 0]


def test_small_sections_can_be_left_out():
    stanzas = [stanza("a", "libs", Depends="b, c"), stanza("b", "libs"), stanza("c", "doc")]
    assert graph_of(*stanzas, rule=replace(EVERYTHING, section_packages=2)).packages == ["a", "b"]


def test_what_everything_needs_is_left_out():
    stanzas = [stanza(name, Depends=f"libc6, {other}") for name, other in ("ab", "bc", "ca")]
    graph = graph_of(*stanzas, stanza("libc6"), rule=replace(EVERYTHING, most_needed_by=2))
    assert graph.packages == ["a", "b", "c"]
    assert "libc6" in graph_of(*stanzas, stanza("libc6"), rule=replace(EVERYTHING, most_needed_by=3)).packages


def test_of_a_source_the_most_needed_package_of_a_section_is_kept():
    stanzas = [
        stanza("box-data", Source="box"),
        stanza("box-lib", Source="box"),
        stanza("box-tool", "games", Source="box"),
        stanza("u", Depends="box-lib, box-tool"),
        stanza("v", Depends="box-lib, box-data"),
    ]
    graph = graph_of(*stanzas, rule=replace(EVERYTHING, one_per_source=True))
    assert graph.packages == ["box-lib", "box-tool", "u", "v"]


def test_the_best_connected_packages_of_each_section_are_kept():
    hub = stanza("hub", "games", Depends="a, b, c, d")
    chain = [stanza("a"), stanza("b", Depends="a"), stanza("c", Depends="b"), stanza("d")]
    graph = graph_of(hub, *chain, rule=replace(EVERYTHING, best_connected=2))
    assert graph.packages == ["a", "b", "hub"]  # b has degree 3; a and c have 2, and a comes first


def test_what_loses_its_bridge_to_the_cap_is_left_out():
    stanzas = [stanza(f"g{i}", f"games{i}", Depends="core, bridge" if i == 0 else "core") for i in range(3)]
    stanzas += [stanza("core"), stanza("bridge", Depends="far"), stanza("far", "doc")]
    graph = graph_of(*stanzas, rule=replace(EVERYTHING, best_connected=1))
    assert graph.packages == ["core", "g0", "g1", "g2"]
    assert "far" in graph_of(*stanzas, rule=replace(EVERYTHING, best_connected=2)).packages


def test_nothing_connected_is_an_error():
    with pytest.raises(InputError, match="INDEX has 1 packages, but no two connected"):
        graph_of(stanza("a"))
    with pytest.raises(InputError, match="INDEX has 0 packages"):
        build({})


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
        return
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


# The file and the command


@pytest.fixture
def index_file(tmp_path):
    """A made-up index that is large enough for the rule of the bundled graph."""
    random = np.random.default_rng(0)
    words = [f"word{i}" for i in range(60)]
    stanzas = []
    for i in range(400):
        needs = ", ".join(f"package{j}" for j in random.integers(0, 400, 3))
        summary = " ".join(random.choice(words, 4))
        stanzas.append(stanza(f"package{i}", BUNDLED.sections[i % 8], summary, Depends=needs))
    path = tmp_path / "Packages"
    path.write_text("\n\n".join(stanzas) + "\n", encoding="utf-8")
    return path


def test_same_index_same_bytes(index_file, tmp_path, capsys):
    outputs = [tmp_path / name for name in ("one.npz", "two.npz")]
    for output in outputs:
        main([str(index_file), "-o", str(output)])
    assert outputs[0].read_bytes() == outputs[1].read_bytes()
    assert re.search(r"one.npz: 400 packages of 8 sections, [\d,]+ edges, 60 words, h = 0.\d+", capsys.readouterr().out)
    data = load_debian(outputs[0])
    assert data.num_nodes == 400
    assert data.name == "one"


def test_a_graph_survives_the_file(index_file, tmp_path):
    packages, indexes = read_indexes([index_file], [])
    assert indexes == [{"sha256": hashlib.sha256(index_file.read_bytes()).hexdigest()}]
    graph = build(packages)
    write_npz(tmp_path / "graph.npz", graph, {"indexes": indexes})
    stored, provenance = read_npz(tmp_path / "graph.npz")
    assert_same_graph(stored, graph)
    assert provenance == {"indexes": indexes}


def packed(path, how):
    content = path.read_bytes()
    if how == "lz4":
        if shutil.which("lz4") is None:
            pytest.skip("the program lz4 is not installed")
        subprocess.run(["lz4", "-q", str(path), f"{path}.lz4"], check=True)
    else:
        Path(f"{path}.{how}").write_bytes({"gz": gzip, "xz": lzma}[how].compress(content))
    return Path(f"{path}.{how}")


@pytest.mark.parametrize("how", ["gz", "xz", "lz4"])
def test_packed_indexes_are_read(index_file, how):
    assert read_indexes([packed(index_file, how)], []) == read_indexes([index_file], [])


@pytest.mark.parametrize("how", ["gz", "xz", "lz4"])
def test_a_damaged_packed_index_is_an_error(index_file, how):
    path = packed(index_file, how)
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(InputError, match=f"{how} cannot be unpacked"):
        read_indexes([path], [])


def test_a_later_index_replaces_packages(tmp_path):
    for name, summary in (("old", "older text"), ("new", "newer text")):
        (tmp_path / name).write_text(stanza("tool", summary=summary), encoding="utf-8")
    packages, _ = read_indexes([tmp_path / "old", tmp_path / "new"], [])
    assert packages["tool"].summary == "newer text"


def test_full_keeps_every_large_section(index_file, tmp_path, capsys):
    text = index_file.read_text(encoding="utf-8").replace("Section: sound", "Section: doc")
    many = "\n\n".join(re.sub(r"package(\d+)", rf"package{k}-\1", text) for k in range(3))
    lone = stanza("lone", "tiny", "word1", Depends="package1")
    index_file.write_text("\n".join([text, many, lone]), encoding="utf-8")
    main([str(index_file), "--full", "-o", str(tmp_path / "full.npz")])
    assert "400 packages of 8 sections" in capsys.readouterr().out
    graph, provenance = read_npz(tmp_path / "full.npz")
    assert graph.class_names == sorted({*BUNDLED.sections, "doc"} - {"sound"})
    assert provenance["rule"]["section_packages"] == FULL.section_packages == 100


RELEASE = """\
-----BEGIN PGP SIGNED MESSAGE-----

Origin: Debian
Suite: stable
Version: 12.15
Codename: bookworm
Date: Sat, 11 Jul 2026 10:16:37 UTC
MD5Sum:
 f230d61720e789abf5df55d6026230c6 50060337 main/binary-amd64/Packages
SHA256:
 {sha256} 50060337 main/binary-amd64/Packages
"""


def test_the_release_is_recorded_and_vouches_for_the_index(index_file, tmp_path):
    sha256 = hashlib.sha256(index_file.read_bytes()).hexdigest()
    release = tmp_path / "InRelease"
    release.write_text(RELEASE.format(sha256=sha256), encoding="utf-8")
    main([str(index_file), "--release", str(release), "-o", str(tmp_path / "graph.npz")])
    assert read_npz(tmp_path / "graph.npz")[1]["indexes"] == [
        {
            "release": "Debian 12.15 (bookworm)",
            "date": "Sat, 11 Jul 2026 10:16:37 UTC",
            "path": "main/binary-amd64/Packages",
            "sha256": sha256,
        }
    ]
    release.write_text(RELEASE.format(sha256="0" * 64), encoding="utf-8")
    with pytest.raises(SystemExit, match=f"{sha256}, which no --release file lists"):
        main([str(index_file), "--release", str(release), "-o", str(tmp_path / "other.npz")])
    assert not (tmp_path / "other.npz").exists()


def test_something_else_than_a_release_is_refused():
    with pytest.raises(InputError, match="no field Codename"):
        parse_release("Origin: Debian\n")
    with pytest.raises(InputError, match="no field SHA256"):
        parse_release("Origin: Debian\nCodename: sid\nDate: today\n")


def test_errors_of_the_command_are_one_line(tmp_path):
    binary = tmp_path / "Packages"
    binary.write_bytes(b"\xff\xfe")
    gone = tmp_path / "gone"
    for path, message in ((gone, "there is no such file"), (binary, "is not text"), (CARD, "stanza without")):
        with pytest.raises(SystemExit, match=message) as stopped:
            main([str(path), "-o", str(tmp_path / "graph.npz")])
        assert "\n" not in str(stopped.value)


@pytest.mark.parametrize("content", [b"not a zip file", None])
def test_a_foreign_file_is_refused(tmp_path, content):
    path = tmp_path / "graph.npz"
    if content is None:
        np.savez(path, edges=np.zeros((2, 2)), words=np.array([object()], dtype=object))
    else:
        path.write_bytes(content)
    with pytest.raises(InputError, match="is not a Debian package graph"):
        load_debian(path)


def test_the_module_runs_and_says_where_the_index_is():
    command = [sys.executable, "-W", "error::RuntimeWarning", "-m", "gcnsl.datasets.debian", "--help"]
    shown = subprocess.run(command, check=True, capture_output=True, text=True)
    assert "dists/bookworm/main/binary-amd64/Packages.xz" in shown.stdout
