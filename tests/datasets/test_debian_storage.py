import numpy as np
import pytest
from debian_cases import assert_same_graph, graph_of, stanza

from gcnsl.datasets.debian import BUNDLED_FILE, load_debian
from gcnsl.datasets.debian.storage import read_npz, write_npz
from gcnsl.errors import InputError


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


@pytest.mark.parametrize("content", [b"not a zip file", None])
def test_a_foreign_file_is_refused(tmp_path, content):
    path = tmp_path / "graph.npz"
    if content is None:
        np.savez(path, edges=np.zeros((2, 2)), words=np.array([object()], dtype=object))
    else:
        path.write_bytes(content)
    with pytest.raises(InputError, match="is not a Debian package graph"):
        load_debian(path)
