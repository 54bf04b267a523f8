import json
from pathlib import Path

from bench import spectral

RESULTS = json.loads((spectral.RESULTS / "spectral.json").read_text(encoding="utf-8"))
PAGE = (Path(__file__).parents[2] / "docs" / "benchmarks.md").read_text(encoding="utf-8")


def test_the_page_has_the_measured_table() -> None:
    assert spectral.to_markdown(RESULTS["datasets"]) in PAGE


def test_esc_is_exact_and_time_grows_with_the_rows() -> None:
    assert all(row["angle"]["esc"] < 1e-6 for row in RESULTS["datasets"])
    assert max(RESULTS["scaling"]["slopes"].values()) < 1.2
