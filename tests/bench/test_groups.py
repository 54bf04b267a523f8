import json
from pathlib import Path
from statistics import mean

from bench import groups

RESULTS = json.loads(groups.RESULTS.read_text(encoding="utf-8"))


def test_the_page_has_the_measured_table() -> None:
    page = (Path(__file__).parents[2] / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert groups.to_markdown(RESULTS) in page
    losses = [mean(run["exact"] - run["groups"] for run in runs) for row in RESULTS.values() for runs in row.values()]
    assert "more than a quarter of a point below" in page
    assert max(losses) <= 0.0025


def test_groups_lose_no_more_than_half_a_point() -> None:
    assert len(RESULTS) == 4
    for of_methods in RESULTS.values():
        assert of_methods.keys() == {"gcn-sl-cc", "gcn-sl-plus"}
        for runs in of_methods.values():
            assert mean(run["groups"] - run["exact"] for run in runs) >= -groups.WANTED
