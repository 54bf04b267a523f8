import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from gcnsl.experiments.figures import draw, standalone
from gcnsl.experiments.plan import EXPERIMENTS, Scope, plan
from gcnsl.experiments.records import by_spec
from gcnsl.experiments.tables import fill

from .plausible import plausible_results

pytestmark = pytest.mark.usefixtures("all_methods")


SCOPE = Scope(runs=2)


def tables(name, *, keep=lambda result: True, scope=SCOPE):
    results = by_spec(result for result in plausible_results(scope, names=[name]) if keep(result))
    return fill(plan(name, replace(scope, results=results)), results)


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("accuracy", ["Cora", "Wisconsin", "the paper's mean ± deviation"]),
        ("ablation", ["A and A*", "neither", "Squirrel"]),
        ("spectral", ["Pubmed", "test accuracy, %"]),
        ("homophily", ["original graph", "learned by NLGNN"]),
        ("depth", ["training", "validation", "GCN, 5 layers"]),
        ("runtime", ["SC", "ESC-ANCH", "the paper's"]),
        ("beyond", ["GCN-SL+", "Twins", "GCN", "test accuracy or ROC-AUC, %"]),
        ("synthetic", ["MLP", "H2GCN-2", "edge homophily h"]),
    ],
)
def test_every_experiment_has_a_picture(findings, name, texts) -> None:
    svg = draw(next(table for table in findings.tables if table.experiment == name))
    ElementTree.fromstring(svg)
    found = re.findall(r">([^<>\n]+)</text>", svg)
    for text in texts:
        assert text in found
    assert 'role="img"' in svg
    assert "currentColor" in svg
    assert "#010203" not in svg
    assert "#040506" not in svg
    assert "var(--line)" in svg
    ElementTree.fromstring(standalone(svg).encode())


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_gaps_do_no_harm(name) -> None:
    first = {}

    def keep(result):
        return first.setdefault(result.spec.method, result.spec.dataset) == result.spec.dataset and result.spec.run == 0

    for table in tables(name, keep=keep):
        svg = draw(table)
        assert svg is None or "nan" not in svg.lower().replace("nanosecond", "")
