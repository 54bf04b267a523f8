import json

import numpy as np
import pandas as pd
import pytest

from gcnsl import NodeClassifier, cli

from .cases import TRAIN


@pytest.mark.parametrize("options", [(), ("--directed",), ("--no-weight",)])
def test_edges_are_read_as_in_training(gcnsl, weighted, tmp_path, options) -> None:
    train = ("train", *weighted, *options, "--method", "gcn", "--set", "epochs=3", "-o", tmp_path / "model")
    assert gcnsl(*train)[0] == 0
    code, out, err = gcnsl("predict", tmp_path / "model", *weighted, "--json")
    assert (code, err) == (0, "")
    assert out == gcnsl("predict", tmp_path / "model", "--json")[1]


def test_the_model_knows_the_column_with_the_weights(gcnsl, weighted, tmp_path) -> None:
    edges = pd.read_csv(tmp_path / "edges.csv")
    edges.assign(strength=edges["weight"], weight=1.0).to_csv(tmp_path / "edges.csv", index=False)
    few = ("--method", "gcn", "--set", "epochs=3", "-o", tmp_path / "model")
    assert gcnsl("train", *weighted, "--weight", "strength", *few)[0] == 0
    own, given = (json.loads(gcnsl("predict", tmp_path / "model", *graph, "--json")[1]) for graph in ((), weighted))
    assert own == given


@pytest.fixture
def grown(frames, tmp_path):
    """Two people more, in files of another kind and with the rows in another order."""
    nodes, edges = frames
    new = nodes.iloc[:2].assign(id=["ann", "bob"], label=None)
    more = pd.DataFrame({"source": ["ann", "ann"], "target": ["bob", "p5"]})
    nodes = pd.concat([nodes, new]).sample(frac=1, random_state=0)
    nodes.to_parquet(tmp_path / "grown.parquet")
    pd.concat([edges, more]).to_csv(tmp_path / "grown-edges.tsv", sep="\t", index=False)
    return "--nodes", tmp_path / "grown.parquet", "--edges", tmp_path / "grown-edges.tsv"


def test_a_grown_graph_in_any_order(gcnsl, model, grown, frames, tmp_path) -> None:
    code, out, err = gcnsl("predict", model, *grown, "-o", tmp_path / "out.csv", "--proba")
    assert (code, err) == (0, "")
    assert "92 nodes, 2 of them new" in out
    table = pd.read_csv(tmp_path / "out.csv")
    assert table["id"].tolist() == pd.read_parquet(grown[1])["id"].tolist(), "in the order of the table"
    nodes, edges = frames
    number = {name: i for i, name in enumerate([*nodes["id"], "ann", "bob"])}
    ends = np.array([[number[name] for name in edges[column]] for column in ("source", "target")])
    ends = np.hstack([ends, [[90, 90], [91, 5]]])
    x = np.vstack([nodes.filter(like="f"), nodes.filter(like="f").iloc[:2]])
    expected = NodeClassifier.load(model).predict_proba(x, edge_index=ends)[[number[name] for name in table["id"]]]
    assert table.filter(like="probability_").to_numpy(np.float32) == pytest.approx(expected, abs=1e-6)


def test_predictions_are_evaluated_on_what_training_did_not_know(gcnsl, model, people, frames, tmp_path) -> None:
    plot = tmp_path / "quality.svg"
    code, out, err = gcnsl("predict", model, *people, "--evaluate", "--metric", "macro-f1", "--plot", plot)
    assert (code, err) == (0, "")
    classifier = NodeClassifier.load(model)
    unseen = (classifier.y_ == -1) & frames[0]["label"].notna().to_numpy()
    counted = f"{unseen.sum()} labelled nodes are counted"
    assert f"{counted}; {80 - unseen.sum()} for training or validation are not." in out
    assert "recall" in out
    assert plot.exists()
    answer = json.loads(gcnsl("predict", model, *people, "--evaluate", "--json")[1])
    expected = classifier.evaluate(None, frames[0]["label"].to_numpy(), nodes=unseen)
    assert answer["evaluation"]["quality"]["metrics"] == pytest.approx(expected, abs=1e-6)
    assert len(answer["predictions"]) == 90


@pytest.fixture
def pets(frames, tmp_path):
    """A graph with columns of all kinds, in two files, and a model of it."""
    nodes, edges = frames
    kinds = {"city": (["oslo", "rome", None] * 30), "born": pd.date_range("2020-01-01", periods=90)}
    nodes = nodes.assign(**kinds, zip=[f"{i % 4:03}" for i in range(90)], age=[*range(89), None])
    nodes.to_csv(tmp_path / "pets.csv", index=False)
    edges.to_csv(tmp_path / "meetings.csv", index=False)
    return nodes, ("--edges", tmp_path / "meetings.csv")


def test_columns_of_all_kinds_of_new_nodes(gcnsl, pets, tmp_path) -> None:
    nodes, edges = pets
    model, quick = tmp_path / "model", ("--method", "mlp", "--set", "epochs=12")
    code, _, err = gcnsl("train", "--nodes", tmp_path / "pets.csv", *edges, "--categorical", "zip", *quick, "-o", model)
    assert code == 0, err
    assert NodeClassifier.load(model).encoder_.kinds["zip"] == "category"
    new = nodes.iloc[:3].assign(id=["x", "y", "z"], city=["paris", None, "oslo"], zip=["000", "999", "7"], f1=None)
    grown = pd.concat([nodes, new]).sample(frac=1, random_state=0)
    grown.to_parquet(tmp_path / "grown.parquet")
    grown.to_csv(tmp_path / "grown.csv", index=False)
    tables = [json.loads(gcnsl("predict", model, "--json")[1])]
    for name in ("grown.csv", "grown.parquet"):
        code, out, err = gcnsl("predict", model, "--nodes", tmp_path / name, *edges, "--json")
        assert (code, err) == (0, "")
        tables.append(json.loads(out))
    assert tables[1] == tables[2]
    before, after = ({row["id"]: row["probability"] for row in table} for table in tables[:2])
    assert after.keys() - before.keys() == {"x", "y", "z"}
    assert all(after[name] == pytest.approx(before[name], abs=1e-6) for name in before)


def test_a_named_graph_is_matched_by_position(gcnsl, data_root, tmp_path) -> None:
    root = ("--root", data_root)
    assert gcnsl("train", "texas", *root, *TRAIN, "-o", tmp_path / "texas")[0] == 0
    for graph in ((), ("texas", *root)):
        gcnsl("predict", tmp_path / "texas", *graph, "-o", tmp_path / f"{len(graph)}.csv")
    assert (tmp_path / "0.csv").read_bytes() == (tmp_path / "3.csv").read_bytes()
    code, _, err = gcnsl("predict", tmp_path / "texas", "wisconsin", *root)
    assert code == cli.BAD_INPUT
    assert err.startswith("Error: the model is for another graph than this one: feature ")


@pytest.fixture
def changed(frames, tmp_path):
    """The graph with other nodes, and without edges."""

    def write(change):
        change(frames[0]).to_csv(tmp_path / "other.csv", index=False)
        frames[1].head(0).to_csv(tmp_path / "other-edges.csv", index=False)
        return "--nodes", tmp_path / "other.csv", "--edges", tmp_path / "other-edges.csv"

    return write


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda nodes: nodes[nodes["id"] != "p4"], "1 of the 90 nodes in training are not in it, the first is 'p4'"),
        (lambda nodes: nodes.assign(f2=nodes["f2"] + 1), "feature 'f2' of node 'p0' is"),
        (lambda nodes: nodes.drop(columns="f2"), "other.csv has no column 'f2', which the model was trained with"),
        (lambda nodes: nodes.assign(f2="tall"), "other.csv, row 1, column 'f2' is 'tall', which is not a number"),
    ],
)
def test_a_model_for_another_graph_is_one_line(gcnsl, model, changed, change, message) -> None:
    code, out, err = gcnsl("predict", model, *changed(change))
    assert (code, out) == (cli.BAD_INPUT, "")
    assert message in err
    assert err.count("\n") == 1


def test_predictions_for_a_spreadsheet_hold_no_formulas(gcnsl, people, tmp_path, frames) -> None:
    frames[0].assign(label=frames[0]["label"].replace("red", "=1+1")).to_csv(tmp_path / "nodes.csv", index=False)
    gcnsl("train", *people, *TRAIN, "-o", tmp_path / "model")
    found = []
    for options in ((), ("--for-spreadsheet",)):
        code, _, err = gcnsl("predict", tmp_path / "model", "-o", tmp_path / "p.csv", *options)
        assert code == 0, err
        found.append(set(pd.read_csv(tmp_path / "p.csv")["predicted"]))
    assert found[1] == {name.replace("=1+1", "'=1+1") for name in found[0]}


@pytest.mark.parametrize("labels", [[3, 1, 7], [1, -1, 1], [True, False, True]])
def test_labels_keep_their_type_from_the_table_to_the_predictions(gcnsl, frames, people, tmp_path, labels) -> None:
    nodes = frames[0].assign(label=[labels[i % 3] for i in range(90)])
    nodes.to_csv(tmp_path / "nodes.csv", index=False)
    assert gcnsl("train", *people, "--method", "logistic", "-o", tmp_path / "model", "--quiet")[0] == 0
    assert gcnsl("predict", tmp_path / "model", *people, "-o", tmp_path / "out.csv")[0] == 0
    found = pd.read_csv(tmp_path / "out.csv")["predicted"]
    assert found.dtype == nodes["label"].dtype == NodeClassifier.load(tmp_path / "model").predict().dtype
    assert (found == nodes["label"]).mean() > 0.3


def test_the_model_remembers_which_labels_are_unknown(gcnsl, frames, people, tmp_path) -> None:
    regions = np.array(["NA", "EU", "AS"])
    frames[0].assign(label=regions[np.arange(90) % 3]).to_csv(tmp_path / "nodes.csv", index=False)
    train = ("train", *people, "--method", "logistic", "-o", tmp_path / "model")
    code, out, err = gcnsl(*train)
    assert code == 0
    assert "Warning: 30 rows have the label NA, which counts as unknown: --unknown '' keeps it as a class" in err
    code, out, err = gcnsl(*train, "--unknown", "")
    assert (code, err) == (0, "")
    assert NodeClassifier.load(tmp_path / "model").classes_.tolist() == ["AS", "EU", "NA"]
    code, out, err = gcnsl("predict", tmp_path / "model", *people, "--evaluate", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["evaluation"]["unknown"] == 0
    assert json.loads(out)["evaluation"]["quality"]["nodes"] == 18, "a fifth of the 90, those with NA among them"
