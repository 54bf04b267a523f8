import json
from pathlib import Path

from bench.busy import ALLOWED, RESULTS, ratio_of, table_of

ROWS = json.loads(RESULTS.read_text(encoding="utf-8"))["rows"]
PAGE = Path(__file__).parents[2] / "docs" / "benchmarks.md"


def test_the_page_has_the_measured_table() -> None:
    assert table_of(ROWS) in PAGE.read_text(encoding="utf-8")


def test_what_is_ours_kept_to_its_bound() -> None:
    assert all(ratio_of(row) <= ALLOWED for row in ROWS if not row["call"].startswith("PyG"))
