import xml.etree.ElementTree as ET

import pytest

from gcnsl import InputError
from gcnsl.evaluation.comparison import Comparison
from gcnsl.evaluation.comparison_picture import draw_comparison

RESULT = Comparison(0.4, accuracy={"mlp": [0.7, 0.72, 0.71], "gcn": [0.8, 0.85], "gcn-sl-cc": [0.81, 0.84, 0.86]})


def test_every_method_is_drawn_with_its_mean(tmp_path) -> None:
    path = draw_comparison(RESULT, tmp_path / "a.svg", graph="people")
    parser = ET.XMLParser(target=ET.TreeBuilder(insert_comments=True))
    texts = {element.text.strip() for element in ET.parse(path, parser).iter() if element.tag is ET.Comment}
    assert {"gcn-sl-cc", "gcn", "mlp", "83.7", "82.5", "71.0", "people: 3 runs on the same splits"} <= texts


def test_one_run_of_one_method(tmp_path) -> None:
    path = draw_comparison(Comparison(0.4, accuracy={"mlp": [0.7]}), tmp_path / "a.png", graph="people")
    assert path.stat().st_size > 5000


def test_an_unknown_kind_is_refused(tmp_path) -> None:
    with pytest.raises(InputError, match=r"must end in one of \.png"):
        draw_comparison(RESULT, tmp_path / "a.bmp", graph="people")
