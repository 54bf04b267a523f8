import json
import re

import pytest

from gcnsl.datasets import NAMES


@pytest.fixture
def tables(tmp_path):
    """A graph of a user's own."""
    nodes, edges = tmp_path / "people.csv", tmp_path / "friends.csv"
    rows = "".join(f"p{i},{i},{i * i},{'even' if i % 2 == 0 else 'odd'}\n" for i in range(20))
    nodes.write_text("id,age,score,label\n" + rows)
    edges.write_text("source,target\n" + "".join(f"p{i},p{i + 1}\n" for i in range(19)))
    return nodes, edges


def test_inspect_bundled_graph(gcnsl, tmp_path) -> None:
    code, out, _ = gcnsl("inspect", "debian", "--plot", tmp_path / "debian.png")
    summary = json.loads(gcnsl("inspect", "debian", "--json")[1])
    rows = [" ".join(re.sub("[│┃]", " ", line).split()) for line in out.splitlines()]
    assert code == 0
    assert f"nodes {summary['nodes']:,}" in rows
    assert "homophily " + " ".join(f"{name} {h:.3f}" for name, h in summary["homophily"].items()) in rows
    for name, size in summary["classes"].items():
        assert f"{name} {size:,}" in [row.rstrip(" █") for row in rows]
    assert (tmp_path / "debian.png").stat().st_size > 10_000


@pytest.fixture
def pets(tmp_path):
    """A graph with columns of several kinds."""
    rows = "".join(f"p{i},{i % 5},{i % 3},{['red', 'NA'][i % 2]},{['', 'a', 'b', '?'][i % 4]}\n" for i in range(60))
    (tmp_path / "pets.csv").write_text('id,dorm,"a, b",colour,label\n' + rows)
    (tmp_path / "edges.csv").write_text("source,target\np1,p2\n")
    return "--nodes", tmp_path / "pets.csv", "--edges", tmp_path / "edges.csv"


def test_inspect_shows_columns_and_the_options_that_change_them(gcnsl, pets) -> None:
    code, out, _ = gcnsl("inspect", *pets)
    rows = [" ".join(re.sub("[│┃]", " ", line).split()) for line in out.splitlines()]
    assert code == 0
    assert "dorm number 0 5 1: as it is" in rows
    assert "colour category red 1 30 2: one-hot" in rows
    remark = "? 'dorm', 'a, b': few whole numbers: codes rather than quantities?"
    assert f"""{remark} (--categorical 'dorm,"a, b"')""" in rows
    assert "(unlabelled) 15" in [row.rstrip(" █") for row in rows]
    out = gcnsl("inspect", *pets, "--categorical", 'dorm,"a, b"', "--unknown", "?")[1]
    assert re.search(r"dorm +│ category", out)
    assert "codes rather" not in out


def test_inspect_gives_columns_as_json(gcnsl, pets) -> None:
    summary = json.loads(gcnsl("inspect", *pets, "--unknown", "?", "--json")[1])
    columns = {column["name"]: column for column in summary["columns"]}
    assert columns["dorm"] == {
        "name": "dorm",
        "kind": "number",
        "example": "0",
        "distinct": 5,
        "missing": 0,
        "features": 1,
        "treatment": "as it is",
        "remark": "few whole numbers: codes rather than quantities?",
        "remedy": "categorical",
        "table": "nodes",
    }
    assert (summary["classes"], summary["unlabelled"]) == ({"a": 15, "b": 15}, 30)


@pytest.mark.parametrize(
    ("edges", "listed"),
    [
        ("p1,p2\np2,p3\n", "2 (0 loops; each listed in one direction)"),
        ("p1,p2\np2,p1\np1,p1\n", "2 (1 loops; each listed in both directions)"),
        ("p1,p2\np1,p2\n", "1 (0 loops; each listed in one direction; 1 repeated entries)"),
        ("p1,p2\np2,p1\np2,p3\n", "2 (0 loops; 1 listed in one direction, 1 in both: --directed keeps the directions)"),
    ],
)
def test_how_edges_are_listed_is_no_fault(gcnsl, tables, edges, listed) -> None:
    tables[1].write_text("source,target\n" + edges)
    assert listed in gcnsl("inspect", "--nodes", tables[0], "--edges", tables[1])[1]


def test_inspect_directions_and_weights(gcnsl, tables) -> None:
    tables[1].write_text("source,target,weight,since\np1,p2,1,1999\np2,p1,2.5,2000\np2,p4,4,2001\n")
    named = ("inspect", "--nodes", tables[0], "--edges", tables[1])
    out = " ".join(re.sub("[│┃]", " ", gcnsl(*named, "--directed")[1]).split())
    assert "edges 2 (0 loops; without their directions)" in out
    assert "arcs 3 reciprocity 66.7% of the arcs also lead in the other direction" in out
    assert "weights min 1 mean 2.5 max 4" in out
    assert "homophily of arcs arc 0.333 out 0.250 in 0.333" in out
    assert re.search(r"edges: since number 1999 3 \d: sum, mean, max of a node's edges", out)
    summary = json.loads(gcnsl(*named, "--directed", "--json")[1])
    assert (summary["arcs"], summary["weights"]) == (3, {"min": 1, "mean": 2.5, "max": 4})
    assert summary["arc_homophily"] == {"arc": pytest.approx(1 / 3), "out": 0.25, "in": pytest.approx(1 / 3)}
    plain = json.loads(gcnsl(*named, "--no-weight", "--json")[1])
    assert (plain["arcs"], plain["weights"], plain["reciprocity"]) == (None, {}, None)


def test_datasets_as_json(gcnsl, monkeypatch, tmp_path) -> None:
    monkeypatch.delenv("GCNSL_DATA", raising=False)
    monkeypatch.setattr("gcnsl.datasets.benchmarks.cache_folder", lambda: tmp_path)
    code, out, _ = gcnsl("datasets", "--json")
    rows = {row["name"]: row for row in json.loads(out)}
    assert code == 0
    assert tuple(rows) == NAMES
    assert rows["debian"]["where"] == "bundled"
    assert rows["debian"]["nodes"] > 1500
    assert rows["cora"]["where"] is None
    assert rows["cora"]["paper"]["edges"] == 5429
    assert "Not on this machine, downloaded on first use: cora, " in gcnsl("datasets")[1]
