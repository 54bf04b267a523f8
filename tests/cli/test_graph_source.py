import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from gcnsl import InputError
from gcnsl.cli.graph_source import GraphSource
from gcnsl.graph.masks import by_run

OPTIONS = [
    *("--nodes", "--edges", "--id", "--source", "--target", "--label", "--name", "--drop", "--categorical"),
    *("--numeric", "--unknown", "--directed", "--weight", "--no-weight", "--edge-type", "--features", "--sep"),
    *("--no-header", "--encoding", "--split-columns", "--fold-column", "--folds"),
]
LEFT_OUT = {"--drop", "--categorical", "--numeric", "--directed", "--edge-type", "--split-columns", "--fold-column"}
LEFT_OUT |= {"--folds"}
"""What has no effect in ``predict``, because the model decides it."""
TABLES = {"nodes": [Path("n.csv")], "edges": [Path("e.csv")]}
NAMED = {"id_column": "name", "label": "kind", "drop": ["chip"]}


@pytest.fixture
def pets(tmp_path) -> dict[str, Path]:
    """Tables whose columns need naming: the first says nothing, the second has the ids, the last the classes."""
    rows = "".join(f"{7 * i},a{i},{i % 5},{'cat' if i % 2 else 'dog'}\n" for i in range(20))
    (tmp_path / "pets.csv").write_text("chip,name,age,kind\n" + rows)
    (tmp_path / "meetings.csv").write_text("source,target\n" + "".join(f"a{i},a{i + 1}\n" for i in range(19)))
    return {"nodes": tmp_path / "pets.csv", "edges": tmp_path / "meetings.csv"}


def given(tables: dict[str, Path]) -> dict[str, list[Path]]:
    return {name: [path] for name, path in tables.items()}


@pytest.mark.parametrize("command", ["inspect", "train", "predict", "compare", "search"])
def test_a_command_shows_them_once_the_common_ones_first(gcnsl, command) -> None:
    out = gcnsl(command, "--help")[1]
    options = re.findall(r"^│ (--[a-z-]+)", out, re.MULTILINE)
    left_out = LEFT_OUT if command == "predict" else ()
    wanted = [option for option in OPTIONS if option not in left_out]
    assert [option for option in options if option in wanted[:2] or option == "--label"] == options[:3]
    assert set(options) >= set(wanted)
    assert set(options).isdisjoint(left_out)
    assert len(set(options)) == len(options)
    assert "A dataset's name" in out
    assert "<bool>" not in out
    assert "Your own graph ─" in out


@pytest.fixture
def asked(monkeypatch) -> list[tuple[GraphSource, dict]]:
    """The graphs that commands ask for, and how; none is read."""
    asked = []

    def read(self, **how):
        asked.append((self, how))
        raise InputError("enough")

    monkeypatch.setattr(GraphSource, "read", read)
    monkeypatch.setattr(GraphSource, "check", lambda self, split: None)
    return asked


def test_a_command_is_given_all_of_them(gcnsl, asked) -> None:
    gcnsl("inspect", "debian")
    tables = ("--nodes", "n.csv", "--edges", "e.csv", "--id", "i", "--label", "l", "--drop", "a", "--drop", "b")
    kinds = ("--categorical", "c,d", "--categorical", "e", "--numeric", "f", "--unknown", "0,?")
    gcnsl("inspect", *tables)
    gcnsl("inspect", *tables, *kinds)
    gcnsl("inspect", *tables, "--directed", "--weight", "w")
    gcnsl("inspect", *tables, "--no-weight")
    named = GraphSource(None, **TABLES, id_column="i", label="l", drop=["a", "b"])
    assert [source for source, _ in asked] == [
        GraphSource("debian"),
        named,
        replace(named, categorical=["c,d", "e"], numeric=["f"], unknown=["0,?"]),
        replace(named, directed=True, weight="w"),
        replace(named, no_weight=True),
    ]


def test_arguments_name_the_same_graph_again(gcnsl, asked) -> None:
    more = {"wide": Path("w.npz"), "source_column": "a", "target_column": "b", "edge_type": "t", "separator": ";"}
    for source in (
        GraphSource("texas", directed=True),
        GraphSource(**TABLES, **NAMED, directed=True, weight="w", **more, encoding="latin-1", no_header="both"),
        GraphSource(None, [Path("n.csv"), Path("m.csv")], [Path("e.csv"), Path("f.csv")], no_weight=True),
    ):
        gcnsl("inspect", *source.arguments)
        again, _ = asked.pop()
        assert replace(again, drop=again.drop or None) == source


def test_columns_by_name(pets) -> None:
    lines = pets["nodes"].read_text().splitlines()
    lines = [f'"a,b",year,mark,{lines[0]}', *(f"{i % 2},'{i % 3}',{i % 4},{line}" for i, line in enumerate(lines[1:]))]
    pets["nodes"].write_text("\n".join(line.replace("'", "") for line in lines))
    source = GraphSource(
        **given(pets),
        id_column="name",
        label="mark",
        drop=['"a,b"', "chip"],
        categorical=["age,year", "kind"],
        unknown=["0,7"],
    )
    data = source.read(split=None, root=None)
    assert data.columns.kinds == {"year": "category", "age": "category", "kind": "category"}
    assert data.class_names == [1, 2, 3]
    assert int((data.y < 0).sum()) == 5
    assert source.arguments[-10:] == [
        *("--drop", '"a,b"', "--drop", "chip", "--categorical", "age,year", "--categorical", "kind"),
        *("--unknown", "0,7"),
    ]
    assert data.encoder is source.read(split=None, root=None, encoder=data.encoder).encoder
    only = GraphSource(**given(pets), id_column="name", label="mark", only=["age"])
    assert only.read(split=None, root=None).feature_names == ["age"]
    assert only.arguments[-2:] == ["--only", "age"]


def test_columns_that_can_be_no_features_are_named_by_their_option(gcnsl, pets) -> None:
    tables = [f"--{name}={pets[name]}" for name in ("nodes", "edges")]
    for column in ("name", "nothing"):
        code, _, said = gcnsl("inspect", *tables, "--id", "name", "--label", "kind", "--only", column)
        assert code == 2
        assert "--only" in said


def test_an_edge_list_without_a_header_may_begin_with_a_loop(gcnsl, tmp_path) -> None:
    (tmp_path / "nodes.csv").write_text("id,label\n" + "".join(f"--{i},{'xy'[i % 2]}\n" for i in range(20)))
    (tmp_path / "edges.csv").write_text("--3,--3\n" + "".join(f"--{i},--{i // 2}\n" for i in range(1, 20)))
    code, said, _ = gcnsl("inspect", "--nodes", tmp_path / "nodes.csv", "--edges", tmp_path / "edges.csv", "--json")
    assert code == 0
    assert json.loads(said)["loops"] == 1


def test_directions_and_weights(pets) -> None:
    lines = pets["edges"].read_text().splitlines()
    rows = [f"{line},{number},{number}0" for number, line in enumerate(lines[1:], start=1)]
    pets["edges"].write_text("\n".join(["source,target,weight,hours", *rows]))
    read = {
        name: GraphSource(**given(pets), **NAMED, **options).read(split=None, root=None)
        for name, options in {
            "plain": {},
            "hours": {"weight": "hours", "directed": True},
            "none": {"no_weight": True},
        }.items()
    }
    assert read["plain"].edge_weight[:3].tolist() == [1, 1, 2]
    assert "arc_index" not in read["plain"]
    assert read["hours"].arc_weight[:3].tolist() == [10, 20, 30]
    assert read["hours"].arc_index[:, :3].tolist() == [[0, 1, 2], [1, 2, 3]]
    assert "edge_weight" not in read["none"]
    for kept, names in {"hours": {"edge_weight", "arc_index"}, "plain": {"edge_weight"}, "none": set()}.items():
        alike = GraphSource(**given(pets), **NAMED).like(read[kept]).read(split=None, root=None)
        assert {name for name in ("edge_weight", "arc_index") if name in alike} == names


@pytest.fixture
def with_columns(pets) -> dict[str, Path]:
    """The table with two splits and with folds."""
    header, *rows = pets["nodes"].read_text().splitlines()
    parts = ["train"] * 10 + ["val"] * 6 + ["test"] * 4
    lines = [f"{row},{parts[i]},{parts[-1 - i]},{i % 3}" for i, row in enumerate(rows)]
    pets["nodes"].write_text("\n".join([f"{header},one,two,part", *lines]))
    return pets


@pytest.mark.parametrize(
    ("chosen", "test_nodes"),
    [
        ({"split_columns": "one, two", "drop": ["chip", "part"]}, [4, 4]),
        ({"split_columns": "two", "drop": ["chip", "part", "one"]}, [4]),
        ({"fold_column": "part", "drop": ["chip", "one", "two"]}, [7, 7, 6]),
        ({"folds": 4, "drop": ["chip", "one", "two", "part"]}, [5, 5, 5, 5]),
    ],
)
def test_given_splits_and_folds(with_columns, chosen, test_nodes) -> None:
    source = GraphSource(**given(with_columns), **(NAMED | chosen))
    data = source.read_labelled(split="random", root=None)
    assert sorted(by_run(data.test_mask).sum(dim=0).tolist()) == sorted(test_nodes)
    assert data.val_mask.any(dim=0).all()
    assert data.feature_names == ["age"]
    (name, value), *_ = chosen.items()
    option = f"--{name.replace('_', '-')}"
    assert source.arguments[source.arguments.index(option) + 1] == str(value)
    assert source.read(split=None, root=None).feature_names == ["age"], "they are no features in predict either"
