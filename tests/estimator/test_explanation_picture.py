import xml.etree.ElementTree as ET

import numpy as np
import pytest

from gcnsl import InputError
from gcnsl.estimator.explanation import explain
from gcnsl.estimator.explanation_picture import draw_explanation

from .cases import N, fitted

IDS = np.array([f"node-{i}" for i in range(N)])


def comments(path) -> list[str]:
    """The texts of an SVG picture, which matplotlib leaves in its comments."""
    parser = ET.XMLParser(target=ET.TreeBuilder(insert_comments=True))
    return [element.text.strip() for element in ET.parse(path, parser).iter() if element.tag is ET.Comment]


@pytest.mark.parametrize("epsilon", [0.02, 0.6])
def test_both_neighbourhoods_are_drawn(tmp_path, epsilon) -> None:
    told = explain(fitted(epsilon=epsilon, fit={"node_ids": IDS}), 0)
    texts = comments(draw_explanation(told, tmp_path / "a.svg"))
    drawn = [text for text in texts if text.startswith("node-") and text[5:].isdigit()]
    expected = [told.node.id, *(o.id for o in told.original), told.node.id, *(o.id for o in told.reconnected[:36])]
    assert sorted(drawn) == sorted(expected)
    assert any(f"{len(told.reconnected)} neighbour" in text for text in texts)
    assert any("36 most similar shown" in text for text in texts) == (len(told.reconnected) > 36)
    assert "in both graphs" in texts


def test_a_model_without_a_learned_graph(tmp_path) -> None:
    path = draw_explanation(explain(fitted(use_reconnected=False), 3), tmp_path / "a.svg")
    assert "Learned graph A*: none in this model" in comments(path)


def test_an_unknown_kind_is_refused(tmp_path) -> None:
    with pytest.raises(InputError, match=r"must end in one of \.png, \.svg, \.pdf"):
        draw_explanation(explain(fitted(), 3), tmp_path / "a.bmp")
