import json
from pathlib import Path

from bench import loading

PAGE = (Path(__file__).parents[2] / "docs" / "benchmarks.md").read_text(encoding="utf-8")


def test_the_page_has_the_measured_table() -> None:
    results = json.loads(loading.RESULTS.read_text(encoding="utf-8"))
    assert loading.to_markdown(results["results"]) in PAGE
