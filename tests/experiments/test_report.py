"""The page shows all results, once, and each number with its runs."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from statistics import fmean

import pytest

from gcnsl.experiments.plan import EXPERIMENTS, Scope
from gcnsl.experiments.report import collect, render

from .plausible import plausible_results

pytestmark = pytest.mark.usefixtures("all_methods")


SCOPE = Scope(runs=2)


def test_a_part_makes_a_smaller_report() -> None:
    part = replace(SCOPE, methods=["mlp", "gcn-sl-cc"], datasets=["debian", "texas"], splits=["random"], runs=3)
    found = collect(plausible_results(part, names=["accuracy"]))
    (accuracy, *_) = found.tables
    assert (accuracy.rows, accuracy.columns) == (("mlp", "gcn-sl-cc"), ("texas", "debian"))
    assert all(len(cell.runs) == 3 for cell in accuracy.cells.values())
    assert "Debian" in render(found)


VOID = {"meta", "br", "hr", "img", "link", "input"}


class Page(HTMLParser):
    """Checks that tags are closed in order, and collects what is asked about."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict]] = []
        self.texts: set[tuple[str, str]] = set()
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

    def handle_data(self, data) -> None:
        if self.open:
            self.texts.add((self.open[-1], data))

    def all(self, tag: str) -> list[dict]:
        return [attributes for name, attributes in self.elements if name == tag]


def page_data(text: str) -> dict:
    (embedded,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, flags=re.DOTALL)
    return json.loads(embedded)


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
    cora, beyond = [cell for cell in data["cells"] if cell["title"] == "MLP on Cora, Geom-GCN's splits"]
    assert beyond["text"].endswith(" over 2 of 2 runs, with the best hyper-parameters of 16 trials.")
    mean = fmean(float(value) for value, _ in cora["runs"])
    told = re.fullmatch(
        r"([\d.]+) ± [\d.]+ over 2 of 2 runs; the paper prints 74.8 ± 2.2, a difference of ([+−][\d.]+)\.", cora["text"]
    )
    assert float(told[1]) == pytest.approx(mean, abs=0.11)
    assert float(told[2].replace("−", "-")) == pytest.approx(mean - 74.8, abs=0.11)
    assert [data["runs"][run][1] for _, run in cora["runs"]] == [42, 43]


@pytest.mark.parametrize("hostile", ["</script><b>", "<!--<script>", "<b>&'\"", "{{ 7 * 7 }}"])
def test_what_results_say_is_escaped(findings, page, hostile) -> None:
    assert "&lt;OOM&gt; &amp; more" in page
    assert "<OOM>" not in page
    table = findings.tables[0]
    cells = {
        key: replace(cell, good=tuple(replace(found, device=hostile) for found in cell.good))
        for key, cell in table.cells.items()
    }
    results = (replace(findings.results[0], device=hostile, status="failed", error=hostile),)
    text = render(replace(findings, results=results, tables=(replace(table, cells=cells),), claims=()))
    assert text.count("</script>") == 2
    assert "<" not in text.partition('id="data">')[2].partition("</script>")[0]
    data = page_data(text)
    assert {line[data["columns"].index("device")] for line in data["runs"]} == {hostile}
    assert {("th", hostile), ("strong", hostile)} <= Page(text).texts
