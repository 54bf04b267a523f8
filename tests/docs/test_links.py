"""Links and pictures lead somewhere. Those to other sites are only looked at, not followed."""

import re
from functools import cache
from pathlib import Path

import pytest

from .pages import PAGES, name_of, text_of

_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)|<(https?://[^>]+)>")
_CODE = re.compile(r"^```.*?^```$|`[^`\n]+`", flags=re.MULTILINE | re.DOTALL)
LINKS = [
    (page, address)
    for page in PAGES
    for found in _LINK.findall(_CODE.sub("", text_of(page)))
    for address in found
    if address
]


@cache
def anchors_of(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and MyST make them."""
    headings = re.findall(r"^#+ (.+)$", _CODE.sub(lambda code: code.group().strip("`"), text_of(page)), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize(("page", "address"), LINKS, ids=lambda part: name_of(part) if isinstance(part, Path) else part)
def test_a_link_leads_somewhere(page, address) -> None:
    if address.startswith("http"):
        assert re.fullmatch(r"https://[\w.-]+\.[a-z]{2,}(/\S*)?", address)
        return
    path, _, anchor = address.partition("#")
    target = (page.parent / path).resolve() if path else page
    assert target.is_file()
    assert not anchor or anchor in anchors_of(target)


def test_there_are_links() -> None:
    assert len(LINKS) > 50


def test_anchors_are_those_of_headings(tmp_path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# `auto`: how?\n\ntext\n\n## What it's for\n")
    assert anchors_of(page) == {"auto-how", "what-its-for"}
