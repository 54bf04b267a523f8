"""The page about a model in a real browser, headless."""

import re

import numpy as np
import pytest

from gcnsl.evaluation import model_page

from .page_cases import HOSTILE, trained

ROWS = 10
IDS = np.array([*HOSTILE, *(f"p{i}" for i in range(4, 90))])


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "page.html"
    classifier, _ = trained("gcn-sl-plus", ids=IDS, names=HOSTILE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(model_page, "SHOWN_ROWS", ROWS)
        model_page.write_model_page(classifier, path, seconds=60)
    return path.as_uri()


def title(page) -> str:
    return page.locator("#about h3").inner_text()


def find(page, name: str) -> None:
    page.locator("#find").fill(name)
    page.keyboard.press("Enter")
    assert page.locator("#why .likely").count() > 0


def test_a_node_is_found_by_keyboard(open_page) -> None:
    page = open_page()
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "find"
    page.keyboard.type("P1")
    options = page.locator("#found [role=option]").all_inner_texts()
    assert len(options) == 8
    assert all("p1" in option for option in options)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    chosen = page.locator("[role=option][aria-selected=true] .name").inner_text()
    page.keyboard.press("Enter")
    assert title(page) == chosen
    assert page.locator("#found").is_hidden()
    page.keyboard.type("zzz")
    assert "No explored node has this name" in page.locator("#found").inner_text()
    page.keyboard.press("Escape")
    assert page.locator("#found").is_hidden()
    page.locator("#find").fill("p42")
    page.locator("#found [role=option]").first.click()
    assert title(page) == "p42"
    page.evaluate("Math.random = () => 0.999")
    page.locator("#random").click()
    assert title(page).strip() == page.evaluate("explored.at(-1).name").strip()


@pytest.mark.parametrize("name", [*HOSTILE, "p50"])
def test_a_node_is_shown_with_its_neighbours(open_page, name) -> None:
    page = open_page()
    find(page, name)
    assert title(page).strip() == name.strip()
    assert "Predicted" in page.locator("#about").inner_text()
    sides = [page.locator(f".neighbour[data-side='{side}']").count() for side in (-1, 1)]
    assert min(sides) > 0
    assert page.locator("#stage .edge").count() == sum(sides)
    assert page.locator("#stage .edge.learned, #stage .edge.both").count() >= sides[1]
    assert page.locator("#why .likely").count() == 3
    assert page.locator(".reasons li").count() > 0


def test_walking_by_click_and_back(open_page) -> None:
    page = open_page()
    find(page, "p50")
    neighbour = page.locator(".neighbour").first
    name = re.match(r"(.*?): predicted", neighbour.get_attribute("aria-label"), re.DOTALL)[1]
    neighbour.hover()
    assert name.strip() in page.locator("#hint").inner_text()
    neighbour.click()
    assert title(page).strip() == name.strip()
    page.go_back()
    assert title(page) == "p50"
    page.reload()
    assert title(page) == "p50", "the address names the node"


def test_walking_by_keyboard(open_page) -> None:
    page = open_page()
    find(page, "p50")

    def side() -> str:
        return page.evaluate("document.activeElement.dataset.side")

    page.locator(".neighbour").first.focus()
    assert side() == "-1"
    page.keyboard.press("ArrowRight")
    assert side() == "1"
    before = page.evaluate("document.activeElement.dataset.node")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.dataset.node") != before
    page.keyboard.press("ArrowUp")
    assert page.evaluate("document.activeElement.dataset.node") == before
    page.keyboard.press("Enter")
    assert title(page) != "p50"


def test_mistakes_are_sorted_filtered_and_explored(open_page) -> None:
    page = open_page()
    page.locator("#mistakes .show-all").click()
    rows = page.locator(".mistakes tbody tr")
    values = page.locator(".mistakes td.bar").evaluate_all("cells => cells.map(cell => Number(cell.dataset.value))")
    assert values == sorted(values, reverse=True)
    page.locator(".mistakes thead button").last.click()
    assert page.locator(".mistakes td.bar").first.get_attribute("data-value") == f"{values[-1]:.5f}"
    truth = rows.first.get_attribute("data-truth")
    page.locator("#filter-truth").select_option(truth)
    shown = page.locator(".mistakes tbody tr:visible")
    assert 0 < shown.count() < rows.count()
    assert set(shown.evaluate_all("rows => rows.map(row => row.dataset.truth)")) == {truth}
    assert f"of {rows.count()} mistakes are such" in page.locator("#filtered").inner_text()
    name = shown.first.locator("button").inner_text()
    shown.first.locator("button").click()
    assert title(page).strip() == name.strip()
    assert "A mistake." in page.locator("#about").inner_text()
    page.locator("#next-mistake").click()
    assert title(page).strip() != name.strip()


def test_long_tables_are_shown_in_full_on_request(open_page) -> None:
    page = open_page()
    rows, visible = (page.locator(f".mistakes tbody tr{which}") for which in ("", ":visible"))
    assert visible.count() == ROWS < rows.count()
    page.locator(".mistakes thead button").first.click()
    names = rows.evaluate_all("rows => rows.map(row => row.cells[0].dataset.value)")
    assert visible.evaluate_all("rows => rows.map(row => row.cells[0].dataset.value)") == names[:ROWS]
    button = page.locator("#mistakes .show-all")
    assert button.inner_text() == f"Show all {rows.count()} rows"
    button.focus()
    page.keyboard.press("Enter")
    assert visible.count() == rows.count()
    assert button.is_hidden()


def test_a_threshold_is_tried_by_keyboard(open_page) -> None:
    page = open_page()
    page.locator("#positive").select_option(index=1)
    slider, cells = page.locator("#slider"), page.locator("#at-threshold td")

    def counts() -> list[int]:
        return [int(cell) for cell in cells.all_inner_texts()]

    slider.focus()
    page.keyboard.press("Home")  # the smallest probability: all nodes are alerts
    hits, missed, false, _ = counts()
    assert missed == 0
    assert hits > 0 < false
    assert page.locator("#curve circle").count() == 1
    page.keyboard.press("End")
    assert counts() == [0, hits, 0, hits + false - hits]
    assert "–" in page.locator("#found-cards .card").nth(1).inner_text(), "no alert has no precision"
    page.keyboard.press("ArrowLeft")
    assert sum(counts()) == hits + false
    value = page.locator("#threshold-value").inner_text()
    command = page.locator("#threshold-command").inner_text()
    assert command.startswith(f"gcnsl predict MODEL --threshold {value} --positive '")


@pytest.mark.parametrize(("scheme", "width"), [("light", 390), ("dark", 1200)])
def test_light_and_dark_phone_and_desktop(open_page, scheme, width) -> None:
    page = open_page(color_scheme=scheme, viewport={"width": width, "height": 844})
    background = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3)")
    assert (sum(map(int, background)) / 765 > 0.5) == (scheme == "light")
    for name in ("p50", HOSTILE[-1]):
        find(page, name)
        assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")
        stage, labels = page.locator("#stage").bounding_box(), page.locator("#stage text")
        for place in range(labels.count()):
            box = labels.nth(place).bounding_box()
            if box and box["width"]:
                assert box["x"] >= stage["x"] - 1
                assert box["x"] + box["width"] <= stage["x"] + stage["width"] + 1
