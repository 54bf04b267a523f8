import json
from pathlib import Path

RESULTS = json.loads((Path(__file__).parents[2] / "bench" / "results" / "cluster.json").read_text(encoding="utf-8"))
PAGE = (Path(__file__).parents[2] / "docs" / "clusters.md").read_text(encoding="utf-8")


def test_the_page_has_what_was_measured() -> None:
    short, long = (f"{RESULTS['efficiency'][epochs]:.0%}".replace("%", " %") for epochs in ("30", "300"))
    assert f"runs of 30 epochs | {short} |" in PAGE
    assert f"runs of 300 epochs | {long} |" in PAGE
    assert f"once to each worker | {RESULTS['bytes_of_a_graph']:,} |" in PAGE
    assert f"for each run | {RESULTS['bytes_per_run']:,} |" in PAGE


def test_nothing_is_lost_with_the_workers() -> None:
    survived = RESULTS["survived"]
    assert survived["kills"] == 30
    assert {survived[what] for what in ("lost", "doubled", "failed", "different")} == {0}
    assert f"workers killed during {survived['runs']} runs | 30 |" in PAGE
