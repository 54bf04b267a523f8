"""Links and pictures lead somewhere. Those to other sites are only looked at, not followed."""

import re
from functools import cache
from pathlib import Path

import pytest

from .pages import PAGES, name_of, text_of

_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)|<(https?://[^>]+)>")
_CODE = re.compile(r"^```.*?^```$|`[^`\n]+`", flags=re.MULTILINE | re.DOTALL)


@cache
def anchors_of(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and MyST make them."""
    headings = re.findall(r"^#+ (.+)$", _CODE.sub(lambda code: code.group().strip("`"), text_of(page)), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page) -> None:
    for address in _LINK.findall(_CODE.sub("", text_of(page))):
        for part in filter(None, address):
            assert leads_somewhere(page, part), part


def leads_somewhere(page: Path, address: str) -> bool:
    if address.startswith("http"):
        return bool(re.fullmatch(r"https://[\w.-]+\.[a-z]{2,}(/\S*)?", address))
    path, _, anchor = address.partition("#")
    target = (page.parent / path).resolve() if path else page
    return target.is_file() and (not anchor or anchor in anchors_of(target))


def test_anchors_are_those_of_headings(tmp_path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# `auto`: how?\n\ntext\n\n## What it's for\n")
    assert anchors_of(page) == {"auto-how", "what-its-for"}
