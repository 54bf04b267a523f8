import pytest
from bench.hostile.slow_reader import Unreadable, read_slowly

NODES = b"id,label,f\n1,a,0.5\n2,b,1\n3,-1,2\n4,NA,3\n5,a,4\n"
EDGES = b"source,target\n1,2\n2,1\n3,3\n5,4\n"


def test_what_a_graph_says() -> None:
    graph = read_slowly(NODES, EDGES)
    assert graph.ids == ["1", "2", "3", "4", "5"]
    assert graph.classes == {frozenset({0, 4}), frozenset({1})}
    assert graph.edges == {(0, 1), (3, 4)}
    assert graph.features == [[0.5], [1.0], [2.0], [3.0], [4.0]]


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (["1", "1.0", "2"], {frozenset({0, 1}), frozenset({2})}),
        (["007", "7", "7"], {frozenset({0}), frozenset({1, 2})}),
        (["9007199254740993", "9007199254740992", ""], {frozenset({0}), frozenset({1})}),
        (["", "-1", "NA"], set()),
    ],
)
def test_labels_are_numbers_if_all_are(labels: list[str], classes: set) -> None:
    nodes = "id,label\n" + "".join(f"n{i},{label}\n" for i, label in enumerate(labels))
    assert read_slowly(nodes.encode(), b"source,target\n").classes == classes


@pytest.mark.parametrize(
    ("nodes", "edges", "why"),
    [
        (b"id,label\n", EDGES, "no node"),
        (b"id,f\n1,2\n1,3\n", EDGES, "same id"),
        (b"id,f\nNA,2\n", EDGES, "missing"),
        (b"id,f,f\n1,2,3\n", EDGES, "two of one name"),
        (b"id,f\n1\n", EDGES, "too few"),
        (b"id,label\n1,a\n2,a\n", EDGES, "only one class"),
        (b"id,label\n1,0.5\n2,1\n", EDGES, "fraction"),
        (b"id,label\n1,\xff\n", EDGES, "UTF-8"),
        (NODES, b"source,target\n1,9\n", "no node"),
        (NODES, b"source\n1\n", "no column"),
    ],
)
def test_what_must_be_refused(nodes: bytes, edges: bytes, why: str) -> None:
    with pytest.raises(Unreadable, match=why):
        read_slowly(nodes, edges)
