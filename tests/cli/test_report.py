import json

import pandas as pd
import pytest

from gcnsl import NodeClassifier


def test_a_model_without_a_graph_is_measured_on_validation_nodes(gcnsl, model, tmp_path) -> None:
    code, out, err = gcnsl("report", model, "-o", tmp_path / "page.html", "--seconds", 0)
    assert (code, err) == (0, "")
    assert f"Page: {tmp_path / 'page.html'} (" in out
    assert "measured on 26 validation nodes" in out
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<h1>model</h1>" in page
    assert "Measured on validation nodes" in page


def test_a_model_and_its_graph_are_measured_on_other_nodes(gcnsl, model, people, tmp_path, frames) -> None:
    code, out, err = gcnsl("report", model, *people, "-o", tmp_path / "page.html", "--seconds", 0, "--json")
    assert (code, err) == (0, "")
    answer, classifier = json.loads(out), NodeClassifier.load(model)
    unseen = ~(classifier.train_mask_ | classifier.val_mask_) & frames[0]["label"].notna().to_numpy()
    assert (answer["measured_on"], answer["nodes"]) == ("test", unseen.sum())
    right = (classifier.predict() == frames[0]["label"].to_numpy())[unseen].mean()
    assert answer["metrics"]["accuracy"] == pytest.approx(right)
    assert answer["page"] == str(tmp_path / "page.html")
    assert f"<h1>{tmp_path.name}</h1>" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_a_graph_that_has_grown(gcnsl, model, people, tmp_path, frames) -> None:
    nodes, edges = frames
    new = nodes.tail(1).assign(id="new <one>", label="violet")
    pd.concat([new, nodes]).to_csv(tmp_path / "nodes.csv", index=False)
    joined = pd.DataFrame({"source": ["new <one>"], "target": ["p5"]})
    pd.concat([edges, joined]).to_csv(tmp_path / "edges.csv", index=False)
    code, _, err = gcnsl("report", model, *people, "-o", tmp_path / "page.html", "--seconds", 0)
    assert (code, err) == (0, "")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<strong>91</strong>" in page
    assert "<strong>4</strong><span>classes</span>" in page


def test_a_name_column_is_shown_wherever_a_node_is(gcnsl, people, tmp_path, frames) -> None:
    nodes, _ = frames
    nodes.assign(alias=[f"person {i}" for i in range(len(nodes))]).to_csv(tmp_path / "nodes.csv", index=False)
    model, page, table = (tmp_path / name for name in ("named", "page.html", "out.csv"))
    train = ("train", *people, "--name", "alias", "--method", "gcn", "--set", "epochs=2", "-o", model, "-q")
    assert gcnsl(*train)[0] == 0
    assert "alias" not in (NodeClassifier.load(model).graph_.feature_names or [])
    assert gcnsl("predict", model, *people, "-o", table, "-q")[0] == 0, "the model knows the column"
    written = pd.read_csv(table)
    assert written["name"].tolist() == [f"person {i}" for i in range(len(nodes))]
    assert written["id"].tolist() == nodes["id"].tolist()
    out = gcnsl("explain", model, "p12")[1]
    assert "person 12 (p12) is predicted" in out
    assert gcnsl("report", model, "-o", page, "--seconds", 0)[0] == 0
    assert "person " in page.read_text(encoding="utf-8").partition('id="data"')[2]
