import xml.etree.ElementTree as ET
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from matplotlib.transforms import Bbox

from gcnsl import InputError
from gcnsl.estimator.explanation import explain
from gcnsl.estimator.explanation_picture import _figure, draw_explanation

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
    assert sorted(drawn) == sorted([*(o.id for o in told.original), *(o.id for o in told.reconnected[:48])])
    assert any(f"{len(told.reconnected)} neighbour" in text for text in texts)
    assert any("the 48 most similar are shown" in text for text in texts) == (len(told.reconnected) > 48)
    assert any(text.startswith("node-0: ") for text in texts), "in the title it covers nothing"
    assert ("in both graphs" in texts) == any(other.reconnected for other in told.original)


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
        axes = _figure(explanation).axes[0]
        assert sum(_HEADS[type(patch.get_arrowstyle()).__name__] for patch in axes.patches) == heads


def test_features_are_drawn(tmp_path) -> None:
    told = explain(fitted(), 3)
    texts = comments(draw_explanation(told, tmp_path / "a.svg"))
    assert [text for text in texts if text.startswith("feature ")] == [f.name for f in told.features[:8]]
    assert {f"log-odds for {told.node.predicted}", f"against {told.rival}"} <= set(texts)


def test_a_crowd_is_not_drawn(tmp_path) -> None:
    told = explain(fitted(epsilon=0.01, feature_shift=100.0, fit={"node_ids": IDS}), 0)
    texts = comments(draw_explanation(told, tmp_path / "a.svg"))
    assert "so many that A* tells nothing about this node" in " ".join(texts)
    assert sum(text.startswith("node-") for text in texts) == len(told.original) + 1


def test_a_model_without_a_learned_graph(tmp_path) -> None:
    texts = comments(draw_explanation(explain(fitted(use_reconnected=False), 3), tmp_path / "a.svg"))
    assert any("Given graph A" in text for text in texts)
    assert not any("A*" in text for text in texts)


def told_of(neighbours: int, name: str, *, learned: int = 3):
    """An explanation with so many neighbours, of long or short names."""
    told = explain(fitted(epsilon=0.2, fit={"node_ids": np.array([f"{name}{i}" for i in range(N)])}), 0)

    def several(some, count):
        return [replace(some[i % len(some)], id=f"{name}{i}") for i in range(count)]

    found = several(told.original, neighbours), several(told.original, learned)
    return replace(told, original=found[0], reconnected=found[1], nodes=10_000)


@pytest.mark.parametrize("name", ["n", "puppet-module-nova-with-a-name-that-is-cut"])
@pytest.mark.parametrize("neighbours", [0, 1, 2, 3, 9, 14, 36, 60])
def test_names_cover_nothing_and_the_canvas_is_used(neighbours, name) -> None:
    figure = _figure(told_of(neighbours, name))
    figure.draw_without_rendering()
    for axes, count in zip(figure.axes, (min(neighbours, 48), 3), strict=False):
        boxes = [text.get_window_extent() for text in axes.texts]
        assert len(boxes) == len(axes.patches) == count
        assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
        ends = np.array([line.get_xydata()[0] for line in axes.lines])
        along_edges = np.concatenate([share * ends for share in np.linspace(0, 1, 50)])
        for x, y in axes.transData.transform(along_edges):
            assert not any(box.contains(x, y) for box in boxes)
        if count:
            dots = [line.get_window_extent() for line in axes.lines]
            drawn, canvas = Bbox.union([*boxes, *dots]), axes.get_window_extent()
            assert canvas.x0 <= drawn.x0 < drawn.x1 <= canvas.x1
            assert drawn.width >= 0.8 * canvas.width
            assert drawn.height >= 0.8 * canvas.height or count <= 2, "two neighbours are side by side"


@pytest.mark.parametrize("neighbours", [1, 2, 40])
def test_titles_are_whole_and_apart(neighbours) -> None:
    told = told_of(neighbours, "n")
    node = replace(told.node, id="a node with quite a long name", predicted="a class with quite a long name")
    likely = {node.predicted: 0.7, **told.probabilities}
    figure = _figure(replace(told, node=node, probabilities=likely))
    figure.draw_without_rendering()
    boxes = [axes.title.get_window_extent() for axes in figure.axes]
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
    others = figure._suptitle, figure.legends[0], figure.axes[-1].xaxis.label
    for box in (*boxes, *(other.get_window_extent() for other in others)):
        assert figure.bbox.x0 <= box.x0 < box.x1 <= figure.bbox.x1
        assert figure.bbox.y0 <= box.y0 < box.y1 <= figure.bbox.y1


def test_an_unknown_kind_is_refused(tmp_path) -> None:
    with pytest.raises(InputError, match=r"must end in one of \.png, \.svg, \.pdf"):
        draw_explanation(explain(fitted(), 3), tmp_path / "a.bmp")
