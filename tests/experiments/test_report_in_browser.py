"""The page in a real browser, headless."""

from dataclasses import replace

import pytest

from gcnsl.experiments.report import render
from gcnsl.methods import resolve


@pytest.fixture(scope="module")
def address(page, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(page, encoding="utf-8")
    return path.as_uri()


def test_hostile_results_do_not_disable_the_script(browser, findings, tmp_path) -> None:
    table = findings.tables[-1]
    cells = {
        key: replace(cell, good=tuple(replace(found, device="<!--<script>") for found in cell.good))
        for key, cell in table.cells.items()
    }
    path = tmp_path / "hostile.html"
    path.write_text(render(replace(findings, tables=(replace(table, cells=cells),), claims=())), encoding="utf-8")
    page = browser.new_page()
    page.goto(path.as_uri())
    page.locator("button.number").first.click()
    assert "<!--<script>" in page.get_by_role("dialog").inner_text()
    page.close()


def column(page, number: int) -> list[float]:
    cells = page.locator("#accuracy table").first.locator(f"tbody tr > :nth-child({number})")
    return [float(value) for value in cells.evaluate_all("cells => cells.map(c => c.dataset.value)")]


def test_sorting_by_keyboard(open_page) -> None:
    page = open_page()
    headings = page.locator("#accuracy table").first.locator("thead th")
    headings.nth(0).get_by_role("button").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert column(page, 3) == sorted(column(page, 3), reverse=True)
    page.keyboard.press("Space")
    assert column(page, 3) == sorted(column(page, 3))
    assert headings.nth(2).get_attribute("aria-sort") == "ascending"
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    assert headings.nth(2).get_attribute("aria-sort") is None
    assert column(page, 2) == sorted(column(page, 2), reverse=True)


def test_the_runs_behind_a_number(open_page) -> None:
    page = open_page()
    dialog = page.get_by_role("dialog")
    n_anchors = resolve("gcn-sl-av", benchmark="cora").options()["n_anchors"]
    number = page.locator("#accuracy table").first.locator("tbody tr").last.locator("button").first
    number.focus()
    page.keyboard.press("Enter")
    dialog.wait_for(state="visible")
    assert dialog.get_by_role("heading").first.inner_text() == "GCN-SL_av on Cora, random splits"
    assert dialog.locator("dt", has_text="n_anchors").locator("xpath=../dd").inner_text() == str(n_anchors)
    assert dialog.locator("table").first.locator("tbody tr").count() == 2
    page.keyboard.press("Escape")
    dialog.wait_for(state="hidden")
    assert number.evaluate("button => button === document.activeElement")
    number.click()
    dialog.get_by_role("button", name="Close").click()
    dialog.wait_for(state="hidden")


def test_a_phone_scrolls_tables_and_not_the_page(open_page) -> None:
    page = open_page(viewport={"width": 390, "height": 844}, has_touch=True)
    widths = page.evaluate("[document.scrollingElement.scrollWidth, window.innerWidth]")
    assert widths[0] <= widths[1]
    scroll = page.locator("#accuracy .scroll").first
    assert scroll.evaluate("area => area.scrollWidth > area.clientWidth")
    first = scroll.locator("tbody th").first
    before = first.bounding_box()["x"]
    scroll.evaluate("area => { area.scrollLeft = 200 }")
    assert first.bounding_box()["x"] == pytest.approx(before, abs=1), "the methods' names stay in sight"
