import json
from pathlib import Path

from bench import reconnect

RESULTS = json.loads((reconnect.RESULTS / "reconnect.json").read_text(encoding="utf-8"))
PAGE = (Path(__file__).parents[2] / "docs" / "benchmarks.md").read_text(encoding="utf-8")


def test_the_page_has_the_measured_table() -> None:
    assert reconnect.to_markdown(RESULTS) in PAGE


def test_all_searches_found_the_same_pairs() -> None:
    for n in reconnect.SIZES["cpu"]:
        searches = [row for row in RESULTS["cpu"]["rows"] if row["work"] == "search" and row["n"] == n]
        assert len({row["found"] for row in searches if "found" in row}) == 1
