import json
from pathlib import Path

import pytest
from bench.own_graphs import RESULTS, means_of, table_of

PAGE = Path(__file__).parents[2] / "docs" / "auto.md"


def test_the_page_has_the_measured_table() -> None:
    assert table_of(json.loads(RESULTS.read_text(encoding="utf-8"))) in PAGE.read_text(encoding="utf-8")


def test_means_are_of_what_every_run_has() -> None:
    runs = [{"accuracy": 0.5, "roc-auc": 0.7}, {"accuracy": 0.7}]
    assert means_of(runs) == pytest.approx({"accuracy": 60.0})
    assert means_of([]) == {}


def test_auto_is_compared_with_the_best_reference() -> None:
    split = {"logistic": {"accuracy": 0.5}, "PyG GCN": {"accuracy": 0.75}, "auto": {"accuracy": 0.7}}
    results = {"one": {"0": split}, "without auto": {"0": {"logistic": {"accuracy": 0.5}}}}
    *_, line = table_of(results).splitlines()
    assert line == "| one (1) | 50.0 | – | – | 75.0 | – | – | 70.0 | -5.0 |"
