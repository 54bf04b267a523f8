import json
from dataclasses import asdict

import pytest

from gcnsl import NodeClassifier, cli
from gcnsl.estimator.explanation import explain


def test_a_node(gcnsl, model) -> None:
    told = explain(NodeClassifier.load(model), 12)
    code, out, err = gcnsl("explain", model, "p12", "--top", 3)
    assert (code, err) == (0, "")
    assert f"p12 is predicted to be {told.node.predicted} (its class, " in out
    assert f"Learned graph A* of GCN-SL_cc: {len(told.reconnected)} neighbour" in out
    assert f"Given graph A: {len(told.original)} neighbour" in out
    assert f"{told.reconnected[0].similarity:.2f}" in out
    assert f"and {len(told.reconnected) - 3} more: --top shows more" in out
    for other in (*told.original[:3], *told.reconnected[:3]):
        assert other.id in out
    for other in told.reconnected[:3]:
        assert f"A* joins {other.id}: {other.reasons[0]}" in " ".join(out.split())
    assert f"Without its {len(told.original)} neighbours: " in out
    for branch, value in told.evidence.items():
        assert f"{branch} {value:+.2f}" in out
    assert f"What speaks for {told.node.predicted} against {told.rival}" in out
    for each in told.contributions[:8]:
        assert f" {each.name} " in out
        assert f" {each.log_odds:+.2f} " in out
    assert "its class was not known to training" in gcnsl("explain", model, "p3")[1]


def test_as_json(gcnsl, model) -> None:
    told = explain(NodeClassifier.load(model), 12)
    answer = json.loads(gcnsl("explain", model, "p12", "--top", 2, "--json")[1])
    assert answer["node"]["id"] == "p12"
    assert answer["contributions"] == [asdict(each) for each in told.contributions]
    assert answer["alone"] == asdict(told.alone)
    assert answer["probabilities"] == pytest.approx(told.probabilities)
    for name in ("original", "reconnected"):
        neighbours = getattr(told, name)
        assert answer[name]["count"] == len(neighbours)
        assert {kind: answer[name][kind] for kind in ("known", "predicted")} == {
            kind: asdict(tally) for kind, tally in told.tally(neighbours).items()
        }
        assert [other["id"] for other in answer[name]["nodes"]] == [other.id for other in neighbours[:2]]


def test_without_a_node_columns_and_edges_are_weighed(gcnsl, model) -> None:
    found = NodeClassifier.load(model).importance_
    code, out, err = gcnsl("explain", model, "--top", 2)
    assert (code, err) == (0, "")
    assert f"Accuracy {100 * found.attrs['both']:.1f}% on 26 validation nodes; without edges " in out
    assert found["column"][0] in out
    answer = json.loads(gcnsl("explain", model, "--json")[1])
    assert [each["column"] for each in answer["columns"]] == list(found["column"])
    assert gcnsl("explain", model, "--report", "page.html")[0] == cli.BAD_INPUT


def test_edges_are_shown_with_directions_and_weights(gcnsl, model, weighted, tmp_path) -> None:
    assert "edge in A" not in gcnsl("explain", model, "p12")[1]
    gcnsl(
        "train",
        *weighted,
        "--directed",
        "--method",
        "gcn",
        "--method",
        "gcn-sl",
        "--set",
        "epochs=3",
        "-o",
        tmp_path / "directed",
    )
    told = explain(NodeClassifier.load(tmp_path / "directed"), 12)
    _, out, _ = gcnsl("explain", tmp_path / "directed", "p12", "--top", 99)
    assert "edge in A" in out
    assert "→ from p12, ← to p12" in out
    for other in told.original:
        assert f"│ {other.id} │ {other.arrows} │" in " ".join(out.split())
    answer = json.loads(gcnsl("explain", tmp_path / "directed", "p12", "--json", "--top", 99)[1])
    assert [other["links"] for other in answer["original"]["nodes"]] == [other.links for other in told.original]
    assert {way for other in told.original for way in other.links} == {"out", "in"}


def test_an_unknown_node_is_one_line(gcnsl, model) -> None:
    code, out, err = gcnsl("explain", model, "p12x")
    said = "NODE p12x is the id of no node that the model was trained with: did you mean 'p12'?"
    assert (code, out, err) == (cli.BAD_INPUT, "", f"Error: {said}\n")
