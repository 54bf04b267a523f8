"""The pages of the documentation, and the blocks of code in them."""

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
BUILT = ("_build", "generated")
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(path for path in (ROOT / "docs").rglob("*.md") if not set(BUILT) & set(path.parts)),
]
_BLOCK = re.compile(
    r"^(?:\*Not run by the tests: needs ([^\n]+)\.\*\n\n)?```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL
)


class Block(NamedTuple):
    """A block of code, and what it needs that the tests do not have, if anything."""

    needs: str
    language: str
    code: str


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def blocks_of(page: Path) -> list[Block]:
    return [Block(*found) for found in _BLOCK.findall(text_of(page))]


def commands_in(block: Block) -> list[str]:
    """The lines that a reader would type: all of a block of bash, and what stands after ``$`` where output is shown."""
    if block.language == "bash":
        return [line for line in block.code.splitlines() if line]
    return re.findall(r"^\$ (.*)$", block.code, flags=re.MULTILINE) if block.language == "text" else []
