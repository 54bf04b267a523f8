"""What pages say about the package is so."""

import importlib
import re

import pandas as pd
import pytest

from .pages import PAGES, ROOT, name_of, text_of


def test_public_names_are_those_of_the_modules() -> None:
    rows = re.findall(r"^\| `(gcnsl[\w.]*)` \| (.+) \|$", text_of(ROOT / "docs" / "public-names.md"), re.MULTILINE)
    assert [module for module, _ in rows][:2] == ["gcnsl", "gcnsl.nn"]
    for module, names in rows:
        assert re.findall(r"`(\w+)`", names) == importlib.import_module(module).__all__


def test_every_public_name_has_a_place_in_the_reference() -> None:
    documented: dict[str, set[str]] = {}
    for page in (ROOT / "docs" / "reference").glob("*.md"):
        for part in text_of(page).split(".. currentmodule:: ")[1:]:
            module, *lines = part.splitlines()
            documented.setdefault(module, set()).update(line.strip() for line in lines if re.fullmatch(r" +\w+", line))
    for module, names in documented.items():
        assert all(hasattr(importlib.import_module(module), name) for name in names), module
    everywhere = set().union(*documented.values())
    others = ("nn", "graph", "datasets", "evaluation", "spectral", "reconnection")
    for module in ("gcnsl", *(f"gcnsl.{name}" for name in others)):
        assert set(importlib.import_module(module).__all__) <= everywhere


def test_links_to_files_lead_somewhere() -> None:
    for page in PAGES:
        text = re.sub(r"^```.*?^```$|`[^`\n]+`", "", text_of(page), flags=re.MULTILINE | re.DOTALL)
        for address in re.findall(r"\[[^\]]*\]\(([^)#\s]+)[^)\s]*\)", text):
            assert address.startswith("https://") or (page.parent / address).exists(), f"{address} in {name_of(page)}"


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("page", ["README.md", "docs/tutorials/own-graph.md"])
def test_bad_input_is_refused_as_the_page_says(page, gcnsl) -> None:
    nodes = pd.read_csv("nodes.csv")
    nodes.loc[2, ["id", "f0"]] = ["ann", 0.5]
    nodes.to_csv("nodes.csv", index=False)
    code, _, err = gcnsl("inspect", "--nodes", "nodes.csv", "--edges", "edges.csv")
    promised = re.search(r"^    (Error: .*\n    .*)$", text_of(ROOT / page), flags=re.MULTILINE)
    assert (code, " ".join(err.split())) == (2, " ".join(promised.group(1).split()))
