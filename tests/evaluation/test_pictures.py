import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np

from gcnsl.evaluation import Comparison, Measured
from gcnsl.evaluation.comparison import Reached
from gcnsl.evaluation.pictures import draw_comparison, draw_measured
from gcnsl.training.decisions import ThresholdRule, choose_threshold

ACCURACY = {"mlp": [0.7, 0.735, 0.75], "gcn": [0.8, 0.85], "gcn-sl-cc": [0.81, 0.84, 0.86]}


def runs_of(values: dict) -> dict:
    return {
        name: {run: Reached({"accuracy": value, "log-loss": value}) for run, value in enumerate(given)}
        for name, given in values.items()
    }


RESULT = Comparison(0.4, runs=runs_of(ACCURACY))


def comments(path) -> list[str]:
    """The texts of an SVG picture, which matplotlib leaves in its comments."""
    parser = ET.XMLParser(target=ET.TreeBuilder(insert_comments=True))
    return [element.text.strip() for element in ET.parse(path, parser).iter() if element.tag is ET.Comment]


def texts_of(path) -> set[str]:
    return set(comments(path))


def test_every_method_is_drawn_with_its_mean(tmp_path) -> None:
    texts = texts_of(draw_comparison(RESULT, tmp_path / "a.svg", graph="people"))
    assert {"gcn-sl-cc", "gcn (undecided)", "mlp", "83.7", "82.5", "72.8", "people: 3 runs on the same splits"} <= texts
    assert "test accuracy (%)" in texts


def measured(classes=3):
    rng = np.random.default_rng(0)
    probabilities = rng.dirichlet(np.full(classes, 0.3), size=200)
    y = np.array([rng.choice(classes, p=row) for row in probabilities])
    return Measured(probabilities, y, [f"class {c}" for c in range(classes)])


def test_the_matrix_has_every_class_and_number(tmp_path) -> None:
    drawn = measured()
    texts = comments(draw_measured(drawn, tmp_path / "a.svg", title="gcn on people"))
    assert texts.count("class 1") == 2, "as a row and as a column"
    for row in drawn.confusion:
        assert {str(count) for count in row} <= set(texts)
    assert "gcn on people: 200 test nodes" in texts
    assert any(text.startswith("Calibration (error ") for text in texts)
    assert not any(text.startswith("Precision and recall") for text in texts), "no class is looked for"


def test_the_threshold_in_use_is_on_the_curves(tmp_path) -> None:
    rare = measured(2)
    chosen = choose_threshold(ThresholdRule.read("recall=.5"), rare.probabilities[:, 1], rare.truth == 1)
    rare = replace(rare, threshold=chosen, positive=1)
    texts, found = texts_of(draw_measured(rare, tmp_path / "a.svg", title="gcn")), rare.classes[1]
    assert {"Precision and recall of class 1", f"precision {found.precision:.0%}"} <= texts
    assert f"recall {found.recall:.0%}" in texts
    assert f"threshold of the probability, {chosen.value:.3g} in use: {found.predicted:,} alerts" in texts
    without = replace(rare, threshold=replace(chosen, value=np.inf))
    assert {"precision –", "recall 0%"} <= texts_of(draw_measured(without, tmp_path / "b.svg", title="gcn"))
