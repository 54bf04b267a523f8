import json
import re
import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from gcnsl import NodeClassifier
from gcnsl.auto import ChosenBy
from gcnsl.estimator.explanation import explain
from gcnsl.evaluation import Measured, model_page
from gcnsl.evaluation.intervals import wilson
from gcnsl.evaluation.model_page import ExploredNodes, write_model_page, write_node_page
from gcnsl.training.decisions import ThresholdRule, choose_threshold

from .page_cases import HOSTILE, trained


def page_of(classifier, tmp_path, data=None, **options) -> str:
    write_model_page(classifier, tmp_path / "page.html", data, **{"seconds": 0} | options)
    return (tmp_path / "page.html").read_text(encoding="utf-8")


def embedded(page: str) -> dict:
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1])


def test_what_was_measured_is_said(tmp_path) -> None:
    classifier, truth = trained()
    page = page_of(classifier, tmp_path, name="People & more")
    assert "<h1>People &amp; more</h1>" in page
    assert "Measured on validation nodes" in page
    data = classifier.graph_.clone()
    data.y = data.y.new_tensor(np.searchsorted(classifier.classes_, truth.astype(str)))
    page = page_of(classifier, tmp_path, data)
    assert "Measured on 10 nodes whose labels were used neither for training nor" in page
    right = (classifier.predict()[:10] == truth[:10].astype(str)).mean()
    low, high = (100 * end for end in wilson(10 * right, 10))
    assert f"<b>{100 * right:.1f}%</b> <small>({low:.0f}–{high:.0f})</small> of 10 test nodes right" in page
    assert "1 of 90 nodes can be explored" in page
    assert "Leaderboard" not in page


def test_a_saved_model_has_the_same_page(tmp_path) -> None:
    classifier, _ = trained("gcn-sl-plus")
    classifier.save(tmp_path / "model")
    loaded = NodeClassifier.load(tmp_path / "model", device="cpu")
    pages = [page_of(each, tmp_path) for each in (classifier, loaded)]
    assert pages[0] == pages[1]


@pytest.mark.parametrize("method", ["gcn-sl-plus", "boosted-trees", "label-propagation"])
def test_hostile_names_are_data(tmp_path, method) -> None:
    ids = np.array([f"<b>{i}</b></script>" for i in range(90)])
    classifier, _ = trained(method, names=HOSTILE, ids=ids, **({} if method == "gcn-sl-plus" else {"epochs": 2}))
    page = page_of(classifier, tmp_path)
    data = embedded(page)
    assert data["classes"] == sorted(HOSTILE)
    assert {node[0] for node in data["nodes"]} <= set(ids)
    assert page.count("</script>") == 3
    assert "<b>x" not in page
    assert "<!--<" not in page


def test_nothing_is_loaded(tmp_path) -> None:
    page = page_of(trained()[0], tmp_path)
    assert set(re.findall(r"https?://[^\s\"']+", page)) == {"http://www.w3.org/2000/svg"}, "the name of a format"
    assert not re.search(r"<(link|img|iframe|object)|\bsrc=|@import|url\(", page)
    assert "default-src 'none'" in page


def test_the_leaderboard(tmp_path) -> None:
    classifier, _ = trained()
    rows = [
        ("best <b>", 0.9, 0.8, 12.0, 0.7, "kept"),
        ("skipped", np.nan, np.nan, 0.0, np.nan, "would take too long"),
    ]
    columns = ("model", "validation", "test", "train_seconds", "weight", "verdict")
    board = pd.DataFrame(rows, columns=columns).assign(
        metric="accuracy", method="mlp", options=None, predict_seconds=[0.001, 0.0], first_fold=[0.9, np.nan]
    )
    classifier.leaderboard_, classifier.chosen_by_ = board, ChosenBy("accuracy", 20, 80, 20, False)
    page = page_of(classifier, tmp_path)
    section = page[page.index('id="leaderboard"') : page.index('id="classes"')]
    assert "best &lt;b&gt;" in section
    assert 'class="validation" style="left: 100.0%"' in section
    assert 'class="test" style="left: 0.0%"' in section
    assert section.count('class="member"') == 1
    assert "would take too long" in section
    assert "nan" not in section
    assert section.count("&lt; 0.01 s") == 1, "what was skipped took no time"
    classifier.leaderboard_ = board.assign(validation=np.nan, test=np.nan, first_fold=np.nan)
    assert 'id="leaderboard"' not in page_of(classifier, tmp_path)


@pytest.mark.slow
def test_a_large_graph_is_sampled(tmp_path) -> None:
    generator, n = np.random.default_rng(0), 200_000
    y = generator.integers(0, 4, n)
    x = np.eye(4, dtype=np.float32)[y] + generator.normal(size=(n, 4)).astype(np.float32)
    ids = np.array([f"a node with a rather long name {i}" for i in range(n)])
    classifier = NodeClassifier("mlp", epochs=1, device="cpu")
    classifier.fit(x, y, edge_index=generator.integers(0, n, (2, 500_000)), node_ids=ids)
    began = time.monotonic()
    page = page_of(classifier, tmp_path, seconds=2)
    assert time.monotonic() - began < 120, "the rest is reading the graph once, on a busy machine"
    assert len(page.encode()) < 3_000_000
    assert re.search(r"\d+ of 200,000 nodes can be explored", page)
    assert "The 1,000 most confident of " in page


IDS = np.array([f"p{i}" for i in range(90)])


@pytest.fixture(scope="module")
def named():
    return trained("gcn-sl-plus", ids=IDS)[0]


@pytest.fixture
def explored(named):
    return ExploredNodes(named, np.where(np.arange(90) == 3, 2, named.y_))


def test_a_view_says_what_the_explanation_says(named, explored) -> None:
    explored.explain([12], seconds=0)
    told, (view,) = explain(named, 12, edges=model_page.DRAWN), explored.views.values()
    assert explored.nodes[explored.place(12)][0] == "p12"
    assert [named.classes_[c] for c, _ in view["likely"]] == list(told.probabilities)
    assert dict(view["evidence"]) == pytest.approx(told.evidence, abs=0.006)
    for part, neighbours in (("given", told.original), ("learned", told.reconnected)):
        assert view[part]["count"] == len(neighbours)
        assert view[part]["summary"] == told.summary(neighbours)
        drawn = neighbours[: model_page.DRAWN]
        assert [explored.nodes[place][0] for place, *_ in view[part]["nodes"]] == [other.id for other in drawn]
        assert [both for *_, both, _, _ in view[part]["nodes"]] == [o.original and o.reconnected for o in drawn]
    assert [words for *_, words, _ in view["learned"]["nodes"]] == [
        "; ".join(map(str, other.reasons)) for other in told.reconnected[: model_page.DRAWN]
    ]
    json.dumps([explored.nodes, explored.views], allow_nan=False)


def test_nodes_say_what_is_known_true_and_predicted(named, explored, monkeypatch) -> None:
    monkeypatch.setattr(model_page, "FEATURED", 0)
    explored.explain([3], seconds=60)
    assert len(explored.views) == len(explored.nodes) == 90
    probabilities = named.predict_proba()
    for number in range(90):
        name, known, truth, predicted, probability, use = explored.nodes[explored.place(number)]
        assert (name, known, predicted) == (f"p{number}", named.y_[number], probabilities[number].argmax())
        assert truth == (2 if number == 3 else known)
        assert probability == pytest.approx(probabilities[number].max(), abs=5e-4)
        assert use == (1 if named.train_mask_[number] else 2 if named.val_mask_[number] else 0)


def test_the_page_of_a_node_begins_with_it(named, tmp_path) -> None:
    write_node_page(named, 12, tmp_path / "page.html", seconds=1)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    data, told = embedded(page), explain(named, 12, edges=model_page.DRAWN)
    assert "<h1>p12</h1>" in page
    assert data["nodes"][data["first"]][0] == "p12"
    shown = data["views"][str(data["first"])]["given"]["nodes"]
    assert [data["nodes"][place][0] for place, *_ in shown] == [other.id for other in told.original[: model_page.DRAWN]]


def test_the_slider_has_the_threshold_in_use_and_finds_what_its_numbers_say() -> None:
    generator = np.random.default_rng(0)
    rare = np.round(generator.beta(1, 6, size=80), 6)
    measured = Measured(np.stack([1 - rare, rare], axis=1), (generator.random(80) < rare).astype(int), ["a", "b"])
    threshold = choose_threshold(ThresholdRule.read("recall=.5"), rare, measured.truth == 1)
    measured = replace(measured, threshold=threshold, positive=1)
    points = model_page._curves(measured)[1]["points"]
    assert [threshold.value, threshold.alerts, threshold.found] in points
    for value, alerts, found in points:
        shown = value if value == threshold.value else float(f"{value:.4g}")
        assert (alerts, found) == (int((rare >= shown).sum()), int(measured.truth[rare >= shown].sum()))
