import re
from pathlib import Path

import pytest

from gcnsl import InputError
from gcnsl.cli.graph_source import GraphSource, _name_of

OPTIONS = ["--nodes", "--edges", "--id", "--label", "--drop"]
NAMED = {"id_column": "name", "label": "kind", "drop": ["chip"]}


@pytest.fixture
def pets(tmp_path) -> dict[str, Path]:
    """Tables whose columns need naming: the first says nothing, the second has the ids, the last the classes."""
    rows = "".join(f"{7 * i},a{i},{i % 5},{'cat' if i % 2 else 'dog'}\n" for i in range(20))
    (tmp_path / "pets.csv").write_text("chip,name,age,kind\n" + rows)
    (tmp_path / "meetings.csv").write_text("source,target\n" + "".join(f"a{i},a{i + 1}\n" for i in range(19)))
    return {"nodes": tmp_path / "pets.csv", "edges": tmp_path / "meetings.csv"}


@pytest.mark.parametrize("command", ["inspect", "train", "predict", "compare", "search"])
def test_a_command_shows_them_once_and_before_its_own(gcnsl, command) -> None:
    out = gcnsl(command, "--help")[1]
    options = re.findall(r"^│ (--[a-z-]+)", out, re.MULTILINE)
    assert options[:5] == OPTIONS
    assert len(set(options)) == len(options)
    assert "A dataset's name" in out


@pytest.fixture
def asked(monkeypatch) -> list[tuple[GraphSource, dict]]:
    """The graphs that commands ask for, and how; none is read."""
    asked = []

    def read(self, **how):
        asked.append((self, how))
        raise InputError("enough")

    monkeypatch.setattr(GraphSource, "read", read)
    return asked


def test_a_command_is_given_all_of_them(gcnsl, asked) -> None:
    gcnsl("inspect", "debian")
    tables = ("--nodes", "n.csv", "--edges", "e.csv", "--id", "i", "--label", "l", "--drop", "a", "--drop", "b")
    gcnsl("inspect", *tables)
    assert [source for source, _ in asked] == [
        GraphSource("debian"),
        GraphSource(None, Path("n.csv"), Path("e.csv"), "i", "l", ["a", "b"]),
    ]


@pytest.mark.parametrize(
    ("command", "more"),
    [
        (["inspect"], {}),
        (["search"], {"runs": 10}),
        (["search", "--runs", 12], {"runs": 12}),
        (["train"], {"runs": 10}),
        (["train", "--run", "12"], {"runs": 13}),
        (["compare"], {"runs": 10}),
        (["compare", "--runs", "3"], {"runs": 3}),
    ],
)
def test_a_command_reads_the_splits_that_it_needs(gcnsl, asked, command, more) -> None:
    gcnsl(*command, "debian", "--split", "public", "--seed", 7, "--root", "data")
    assert asked == [(GraphSource("debian"), {"split": "public", "seed": 7, "root": Path("data"), **more})]


def test_tables(pets) -> None:
    data = GraphSource(**pets, **NAMED).read(split="random", root=None, runs=3)
    assert data.name == "pets"
    assert data.node_ids.tolist() == [f"a{i}" for i in range(20)]
    assert data.feature_names == ["age"]
    assert data.class_names == ["cat", "dog"]
    assert data.train_mask.shape == (20, 3)


@pytest.mark.parametrize("named", [True, False])
def test_random_splits_are_those_of_the_seed(pets, named) -> None:
    source = GraphSource("debian") if named else GraphSource(**pets, **NAMED)
    first, again, other = (source.read(split="random", root=None, seed=seed, runs=2) for seed in (0, 0, 1))
    assert first.train_mask.shape == (first.num_nodes, 2)
    assert first.train_mask.equal(again.train_mask)
    assert not first.train_mask.equal(other.train_mask)
    assert "train_mask" not in source.read(split=None, root=None)


def test_a_split_of_the_table_goes_before(pets) -> None:
    header, *rows = pets["nodes"].read_text().splitlines()
    parts = ["train"] * 10 + ["val"] * 6 + ["test"] * 4
    lines = [f"{header},split", *(f"{row},{part}" for row, part in zip(rows, parts, strict=True))]
    pets["nodes"].write_text("\n".join(lines))
    data = GraphSource(**pets, **NAMED).read(split="random", root=None)
    assert [int(data[f"{part}_mask"].sum()) for part in ("train", "val", "test")] == [10, 6, 4]


def test_tables_without_labels_have_no_masks(pets) -> None:
    data = GraphSource(**pets, id_column="name", drop=["chip", "kind"]).read(split="random", root=None)
    assert data.y is None
    assert "train_mask" not in data


@pytest.mark.parametrize(
    ("given", "is_given"),
    [
        ({}, False),
        ({"label": "kind"}, False),
        ({"nodes": Path("n.csv")}, True),
        ({"edges": Path("e.csv")}, True),
        ({"graph": "debian", "nodes": Path("n.csv"), "edges": Path("e.csv")}, True),
        ({"graph": "debian", "edges": Path("e.csv")}, True),
    ],
)
def test_what_names_no_graph_or_two_is_refused(given, is_given) -> None:
    source = GraphSource(**given)
    assert source.is_given is is_given
    with pytest.raises(InputError, match="name one graph: a dataset"):
        source.read(split=None, root=None)


@pytest.mark.parametrize(
    ("file", "name"), [("school/nodes.csv", "school"), ("school/pupils.csv", "pupils"), ("/nodes.csv", "nodes")]
)
def test_a_graph_is_called_by_what_says_more(file, name) -> None:
    assert _name_of(Path(file)) == name
