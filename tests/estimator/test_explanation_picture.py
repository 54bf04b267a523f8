import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure

from gcnsl import InputError
from gcnsl.estimator.explanation import explain
from gcnsl.estimator.explanation_picture import _class_colors, _draw_side, draw_explanation

from .cases import N, fitted

IDS = np.array([f"node-{i}" for i in range(N)])
_HEADS = {"Curve": 0, "CurveFilledA": 1, "CurveFilledB": 1, "CurveFilledAB": 2}


def comments(path) -> list[str]:
    """The texts of an SVG picture, which matplotlib leaves in its comments."""
    parser = ET.XMLParser(target=ET.TreeBuilder(insert_comments=True))
    return [element.text.strip() for element in ET.parse(path, parser).iter() if element.tag is ET.Comment]


@pytest.mark.parametrize("epsilon", [0.2, 0.6])
def test_both_neighbourhoods_are_drawn(tmp_path, epsilon) -> None:
    told = explain(fitted(epsilon=epsilon, fit={"node_ids": IDS}), 0)
    texts = comments(draw_explanation(told, tmp_path / "a.svg"))
    drawn = [text for text in texts if text.startswith("node-") and text[5:].isdigit()]
    assert sorted(drawn) == sorted([*(o.id for o in told.original), *(o.id for o in told.reconnected[:36])])
    assert any(f"{len(told.reconnected)} neighbour" in text for text in texts)
    assert any("the 36 most similar are shown" in text for text in texts) == (len(told.reconnected) > 36)
    assert any(text.startswith("node-0: ") for text in texts), "in the title it covers nothing"
    assert "in both graphs" in texts


def test_edges_of_the_given_graph_have_heads_and_weights(tmp_path) -> None:
    plain = explain(fitted(epsilon=0.2), 0)
    first, second, third, *rest = plain.original
    links = [{"out": 1.25, "in": 2.5}, {"in": 3.75}, {"out": None}]
    told = [replace(other, links=given) for other, given in zip((first, second, third), links, strict=True)]
    told = replace(plain, original=[*told, *rest])
    texts = comments(draw_explanation(told, tmp_path / "a.svg"))
    assert {"1.25", "2.5", "3.75"} <= set(texts)
    assert any("the numbers are weights of edges" in text for text in texts)
    assert not any("weights" in text for text in comments(draw_explanation(plain, tmp_path / "b.svg")))
    for explanation, heads in ((told, 4), (plain, 0)):
        axes = Figure().subplots()
        _draw_side(axes, "A", explanation, explanation.original, _class_colors(explanation))
        assert sum(_HEADS[type(patch.get_arrowstyle()).__name__] for patch in axes.patches) == heads


def test_features_are_drawn(tmp_path) -> None:
    told = explain(fitted(), 3)
    texts = comments(draw_explanation(told, tmp_path / "a.svg"))
    assert [text for text in texts if text.startswith("feature ")] == [f.name for f in told.features[:8]]
    assert f"log-odds for {told.node.predicted} against {told.rival}" in texts


def test_a_crowd_is_not_drawn(tmp_path) -> None:
    told = explain(fitted(epsilon=0.01, feature_shift=100.0, fit={"node_ids": IDS}), 0)
    texts = comments(draw_explanation(told, tmp_path / "a.svg"))
    assert any("so many that A* tells nothing about this node" in text for text in texts)
    assert sum(text.startswith("node-") for text in texts) == len(told.original) + 1


def test_a_model_without_a_learned_graph(tmp_path) -> None:
    texts = comments(draw_explanation(explain(fitted(use_reconnected=False), 3), tmp_path / "a.svg"))
    assert any("Given graph A" in text for text in texts)
    assert not any("A*" in text for text in texts)


@pytest.mark.parametrize("name", ["n", "puppet-module-nova-with-a-long-name"])
def test_names_are_around_the_circle_of_neighbours(name) -> None:
    told = explain(fitted(epsilon=0.2, fit={"node_ids": np.array([f"{name}{i}" for i in range(N)])}), 0)
    axes = (figure := Figure(figsize=(7, 7), dpi=100)).subplots()
    _draw_side(axes, "A", told, told.original, _class_colors(told))
    figure.canvas.draw()
    half = axes.get_xlim()[1]
    for text in axes.texts:
        corners = axes.transData.inverted().transform(text.get_window_extent().corners())
        assert np.abs(corners).max() < half
        assert np.hypot(*text.get_position()) > 1


def test_an_unknown_kind_is_refused(tmp_path) -> None:
    with pytest.raises(InputError, match=r"must end in one of \.png, \.svg, \.pdf"):
        draw_explanation(explain(fitted(), 3), tmp_path / "a.bmp")
