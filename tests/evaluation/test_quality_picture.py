import xml.etree.ElementTree as ET

import numpy as np
import pytest

from gcnsl import InputError
from gcnsl.evaluation.quality import quality_of
from gcnsl.evaluation.quality_picture import draw_quality


def quality(classes=3):
    rng = np.random.default_rng(0)
    probabilities = rng.dirichlet(np.full(classes, 0.3), size=200)
    y = np.array([rng.choice(classes, p=row) for row in probabilities])
    return quality_of(probabilities, y, [f"class {c}" for c in range(classes)])


def texts_of(path) -> list[str]:
    parser = ET.XMLParser(target=ET.TreeBuilder(insert_comments=True))
    return [element.text.strip() for element in ET.parse(path, parser).iter() if element.tag is ET.Comment]


def test_the_matrix_has_every_class_and_number(tmp_path) -> None:
    drawn = quality()
    texts = texts_of(draw_quality(drawn, tmp_path / "a.svg", title="gcn on people"))
    assert texts.count("class 1") == 2, "as a row and as a column"
    for row in drawn.confusion:
        assert {str(count) for count in row} <= set(texts)
    assert "gcn on people: 200 nodes" in texts
    assert any(text.startswith("Calibration (error ") for text in texts)


def test_many_classes_have_colours_only(tmp_path) -> None:
    texts = texts_of(draw_quality(quality(20), tmp_path / "a.svg", title="t"))
    assert "class 19" in texts
    assert not set(texts) & {str(count) for count in range(7, 200)} - {"20", "40", "60", "80", "100"}


def test_an_unknown_kind_is_refused(tmp_path) -> None:
    with pytest.raises(InputError, match=r"must end in one of \.png"):
        draw_quality(quality(), tmp_path / "a.bmp", title="t")
