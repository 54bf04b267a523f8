import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from statistics import fmean

import pytest
from plausible import plausible_results

from gcnsl.experiments import paper
from gcnsl.experiments.collect import collect
from gcnsl.experiments.hyperparameters import write_settings
from gcnsl.experiments.plan import EXPERIMENTS, Scope
from gcnsl.experiments.report import render

pytestmark = pytest.mark.usefixtures("all_methods")

VOID = {"meta", "br", "hr", "img", "link", "input"}


class Page(HTMLParser):
    """Checks that tags are closed in order, and collects what is asked about."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict]] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attributes) -> None:
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes) -> None:
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag) -> None:
        assert self.open.pop() == tag

    def all(self, tag: str) -> list[dict]:
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture
def scope(tmp_path):
    return Scope(settings=tmp_path, runs=2)


def page_data(text: str) -> dict:
    (embedded,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, flags=re.DOTALL)
    return json.loads(embedded)


def test_all_that_was_run_is_collected(findings, scope) -> None:
    assert [table.name for table in findings.tables] == [
        "accuracy-random",
        "accuracy-geom-gcn",
        *(f"{name}-random" for name in ("ablation", "spectral", "homophily", "depth")),
        "runtime-none",
        "synthetic-random",
    ]
    assert findings.unused == ()
    assert collect([], settings=scope.settings).tables == ()


def test_a_part_makes_a_smaller_report(scope, tmp_path) -> None:
    part = replace(scope, methods=["mlp", "gcn-sl-cc"], datasets=["debian", "texas"], splits=["random"], runs=3)
    found = collect(plausible_results(part, names=["accuracy"]), settings=tmp_path)
    (accuracy, *_) = found.tables
    assert (accuracy.rows, accuracy.columns) == (("mlp", "gcn-sl-cc"), ("texas", "debian"))
    assert all(len(cell.cell.runs) == 3 for cell in accuracy.cells.values())
    assert "Debian" in render(found)


def test_other_splits_are_shown_where_there_are_runs_of_that_experiment_alone(scope, tmp_path) -> None:
    part = replace(scope, methods=["gcn-sl-cc"], datasets=["debian", "texas"], runs=12)
    of_accuracy = plausible_results(part, names=["accuracy"])
    published = replace(part, datasets=["texas"], splits=["geom-gcn"], runs=10)
    of_ablation = plausible_results(published, names=["ablation"])

    def shown(results) -> list[str]:
        return [table.name for table in collect(results, settings=tmp_path).tables]

    assert not any(name.endswith("geom-gcn") for name in shown(of_accuracy) if not name.startswith("accuracy"))
    assert set(shown([*of_accuracy, *of_ablation])) - set(shown(of_accuracy)) == {"ablation-geom-gcn"}
    assert "ablation-geom-gcn" in shown(of_ablation)


def test_runs_with_other_settings_are_counted_not_shown(scope, tmp_path) -> None:
    results = plausible_results(replace(scope, methods=["gcn-sl-cc"], datasets=["texas"]), names=["accuracy"])
    strangers = [replace(result, spec=replace(result.spec, method="unheard-of")) for result in results]
    write_settings(tmp_path / "texas.toml", "gcn-sl-cc", {"lr": 0.123}, {})
    found = collect([*results, *strangers], settings=tmp_path)
    assert {table.experiment.paper_hparams for table in found.tables} == {True}
    assert len(found.unused) == len(strangers)
    assert f"{len(strangers)} further runs have other settings or seeds" in render(found)


def test_both_kinds_of_hyperparameters_are_told_apart(scope, tmp_path) -> None:
    write_settings(tmp_path / "texas.toml", "gcn-sl-cc", {"lr": 0.123}, {})
    part = replace(scope, methods=["gcn-sl-cc"], datasets=["texas"], splits=["random"])
    results = plausible_results(part, names=["accuracy"])
    results += plausible_results(replace(part, paper_hparams=True), names=["accuracy"])
    tables = [table for table in collect(results, settings=tmp_path).tables if table.experiment.name == "accuracy"]
    assert [table.name for table in tables] == ["accuracy-random", "accuracy-random-paper"]
    assert [dict(table.cells["gcn-sl-cc", "texas"].cell.runs[0].options)["lr"] for table in tables] == [0.123, 0.01]


def test_the_page_is_sound_and_complete(findings, page) -> None:
    parsed = Page(page)
    ids = [attributes["id"] for _, attributes in parsed.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {"summary", "claims", *EXPERIMENTS, "failures", "where"} <= set(ids)
    for link in parsed.all("a"):
        assert link["href"].removeprefix("#") in ids
    assert len([svg for svg in parsed.all("svg") if svg.get("role") == "img"]) == len(findings.tables)
    assert len(parsed.all("table")) == len(findings.tables) + 1
    buttons = [button for button in parsed.all("button") if "data-cell" in button]
    shown = sum(bool(cell.good or cell.failed) for table in findings.tables for cell in table.cells.values())
    assert len(buttons) == shown == len(page_data(page)["cells"])
    assert all(heading.get("scope") in ("row", "col") for heading in parsed.all("th"))


def test_the_page_needs_no_network(page) -> None:
    parsed = Page(page)
    for tag in ("script", "img", "link", "iframe", "source"):
        assert not any("src" in attributes or "href" in attributes for attributes in parsed.all(tag))
    addresses = set(re.findall(r"https?://[^\"'<> ]+", page))
    assert addresses <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    assert "default-src 'none'" in page
    assert "@import" not in page
    assert "url(http" not in page


def test_every_number_has_its_runs(page) -> None:
    data = page_data(page)
    for cell in data["cells"]:
        assert data["groups"][cell["group"]]
        for value, run in cell["runs"]:
            assert float(value) >= 0
            assert len(data["runs"][run]) == len(data["columns"])
    (cora,) = [cell for cell in data["cells"] if cell["title"] == "MLP on Cora, Geom-GCN's splits"]
    mean = fmean(float(value) for value, _ in cora["runs"])
    told = re.fullmatch(
        r"([\d.]+) ± [\d.]+ over 2 of 2 runs; the paper prints 74.8 ± 2.2, a difference of ([+−][\d.]+)\.", cora["text"]
    )
    assert float(told[1]) == pytest.approx(mean, abs=0.11)
    assert float(told[2].replace("−", "-")) == pytest.approx(mean - 74.8, abs=0.11)
    assert [data["runs"][run][1] for _, run in cora["runs"]] == [42, 43]


def test_what_users_wrote_is_escaped(findings, page) -> None:
    assert "&lt;OOM&gt; &amp; more" in page
    assert "<OOM>" not in page.replace(json.dumps("<OOM> & more"), "")
    first = replace(findings.results[0], device="</script><b>", status="failed", error="</script>")
    hostile = render(replace(findings, results=(first,), tables=findings.tables[-1:], claims=()))
    assert "</script><b>" not in hostile
    assert hostile.count("</script>") == 2


def test_colours_say_how_near_the_paper_we_are(page) -> None:
    found = re.findall(
        r'<span class="paper">([\d.]+)(?: ± ([\d.]+))? <span class="delta (\w+)">([+−])([\d.]+)</span>', page
    )
    assert len(found) > 100
    assert not re.search(r">[+−]0\.0+<", page), "nothing is a little more or less than nothing"
    for mean, std, colour, sign, size in found:
        if sign == "+":
            assert colour in ("above", "open")
        elif not std:
            assert colour == "open", mean
        elif float(size) < float(std):
            assert colour == "within"
        elif float(size) > float(std):
            assert colour == "below"


def test_the_summary_counts_what_the_table_shows(findings, page) -> None:
    accuracy = findings.tables[0]
    reached = [cell.reached for (row, _), cell in accuracy.cells.items() if row.startswith("gcn-sl")]
    assert f"<strong>{sum(reached)} of 16</strong><span>GCN-SL accuracies reach the paper&#x27;s, random splits" in page
    assert len(reached) == 2 * len(paper.DATASETS)
