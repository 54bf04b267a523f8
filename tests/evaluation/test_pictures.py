import xml.etree.ElementTree as ET

import numpy as np

from gcnsl.evaluation import Measured
from gcnsl.evaluation.pictures import draw_measured


def comments(path) -> list[str]:
    """The texts of an SVG picture, which matplotlib leaves in its comments."""
    parser = ET.XMLParser(target=ET.TreeBuilder(insert_comments=True))
    return [element.text.strip() for element in ET.parse(path, parser).iter() if element.tag is ET.Comment]


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
    assert "gcn on people: 200 nodes" in texts
    assert any(text.startswith("Calibration (error ") for text in texts)
