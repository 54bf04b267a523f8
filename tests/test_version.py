import importlib.metadata
import re
from pathlib import Path

import gcnsl
from gcnsl.version import __version__

ROOT = Path(__file__).parents[1]
LINES = {
    "pyproject.toml": r'^version = "(.+)"$',
    "CITATION.cff": r"^version: (.+)$",
    "CHANGELOG.md": r"^## \[(\d.+?)\]",
}


def test_the_version_is_that_of_the_distribution_and_every_file_names_it() -> None:
    assert gcnsl.__version__ == __version__ == importlib.metadata.version("gcnsl")
    for file, line in LINES.items():
        (first, *_) = re.findall(line, (ROOT / file).read_text(encoding="utf-8"), flags=re.MULTILINE)
        assert first == __version__, file
