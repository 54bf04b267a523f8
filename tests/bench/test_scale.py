import itertools
import json
import math
from pathlib import Path

import pytest

from bench import scale
from gcnsl.training import TrainingSettings

SIZES = json.loads((scale.RESULTS / "scale.json").read_text(encoding="utf-8"))["sizes"]
PAGE = (Path(__file__).parents[2] / "docs" / "benchmarks.md").read_text(encoding="utf-8")


ON_GPU = json.loads((scale.RESULTS / "scale-cuda.json").read_text(encoding="utf-8"))["sizes"]


@pytest.mark.parametrize(("sizes", "device"), [(SIZES, "cpu"), (ON_GPU, "cuda")])
def test_the_page_has_the_measured_tables(sizes, device) -> None:
    assert scale.table_of_epochs(sizes, device) in PAGE
    assert scale.table_of_commands(sizes) in PAGE


def test_the_readme_has_the_minutes_of_a_million_nodes() -> None:
    cpu, gpu = (sizes["1000000"]["end_to_end"]["gcn-sl-plus"]["train"]["clock"] / 60 for sizes in (SIZES, ON_GPU))
    readme = " ".join((Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8").split())
    assert f"a million nodes in {cpu:.0f} minutes on two CPU cores and in {gpu:.1f} minutes on one H200." in readme


@pytest.mark.parametrize("n", scale.WANTED_MINUTES_ON_GPU)
def test_a_gpu_kept_to_its_bounds(n) -> None:
    row = ON_GPU[str(n)]
    assert row["end_to_end"]["gcn-sl-plus"]["train"]["clock"] <= 60 * scale.WANTED_MINUTES_ON_GPU[n]
    epochs = {name: found["epoch"]["clock"] for name, found in row["methods"].items()}
    assert max(epochs.values()) <= scale.WANTED_RATIO * epochs["pyg"]


def test_the_mean_of_epochs_counts_evaluations_as_often_as_they_occur() -> None:
    steps = [9.0, 1.0, 1.5, 1.0, 2.0, 4.0]  # epochs 5 and 6, the last one, are evaluated
    ends = list(itertools.accumulate(steps))
    settings = TrainingSettings(epochs=6)
    assert scale.mean_epoch(ends, settings.for_nodes(10**6)) == pytest.approx((4 * 1.0 + 3.0) / 5)
    assert scale.mean_epoch(ends, settings.for_nodes(100)) == pytest.approx(1.5)


def growth_of(method: str, *, evaluated_alike: bool = False) -> float:
    small, large = (SIZES[n]["methods"][method] for n in ("20000", "1000000"))
    first = small["epoch"]["cores"] - (0.8 * small["predict"]["cores"] if evaluated_alike else 0)
    return math.log(large["epoch"]["cores"] / first) / math.log(50)


@pytest.mark.parametrize("method", ["gcn-sl-cc", "gcn-sl-av", "gcn-sl-plus"])
def test_epochs_kept_to_their_bounds(method) -> None:
    for methods in filter(None, (row["methods"] for row in SIZES.values())):
        assert methods[method]["epoch"]["cores"] <= scale.WANTED_RATIO * methods["pyg"]["epoch"]["cores"]
    assert growth_of(method) <= growth_of(method, evaluated_alike=True) <= scale.WANTED_GROWTH


def test_the_page_says_what_rarer_evaluations_are_worth() -> None:
    methods = ("gcn-sl-cc", "gcn-sl-av", "gcn-sl-plus")
    gains = [f"{growth_of(method, evaluated_alike=True) - growth_of(method):.2f}"[1:] for method in methods]
    assert f"{min(gains)} to {max(gains)} larger" in PAGE


@pytest.mark.parametrize("n", scale.WANTED_MINUTES)
def test_commands_kept_to_their_time(n) -> None:
    assert SIZES[str(n)]["end_to_end"]["gcn-sl-plus"]["train"]["clock"] <= 60 * scale.WANTED_MINUTES[n]


def test_commands_kept_to_their_memory() -> None:
    assert all(
        row["end_to_end"]["gcn-sl-plus"]["train"]["peak_gib"] <= scale.WANTED_GIB
        for row in SIZES.values()
        if row["end_to_end"]
    )
