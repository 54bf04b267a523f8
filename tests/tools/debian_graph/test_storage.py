from tools.debian_graph.storage import write_npz

from gcnsl.datasets.debian import BUNDLED_FILE, read_npz

from .cases import assert_same_graph, graph_of, stanza


def test_a_graph_survives_the_file(tmp_path):
    graph = graph_of(stanza("a", "games", Depends="b, c"), stanza("b", summary="beta"), stanza("c", summary="gamma"))
    write_npz(tmp_path / "graph.npz", graph, {"from": ["here"]})
    stored, provenance = read_npz(tmp_path / "graph.npz")
    assert_same_graph(stored, graph)
    assert provenance == {"from": ["here"]}


def test_the_bundled_file_is_written_again_byte_for_byte(tmp_path):
    """On another day and another machine than the first time."""
    write_npz(tmp_path / "again.npz", *read_npz(BUNDLED_FILE))
    assert (tmp_path / "again.npz").read_bytes() == BUNDLED_FILE.read_bytes()
