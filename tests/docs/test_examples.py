"""Every block of code in the documentation runs, and prints what it promises."""

import contextlib
import io
import re
import shlex
import shutil
import sys

import pytest

from gcnsl import cli

from .pages import PAGES, ROOT, blocks_of, commands_in, name_of, text_of

RECIPES = ROOT / "CONTRIBUTING.md"
"""Its blocks are followed by ``test_recipes``."""
SLOW = ("docs/clusters.md", "docs/tutorials/reproducing-the-paper.md")
"""Pages whose commands start processes or fit many models."""
EXAMPLES = [
    pytest.param(page, marks=[pytest.mark.slow] * (name_of(page) in SLOW), id=name_of(page))
    for page in PAGES
    if page != RECIPES and any(not block.needs for block in blocks_of(page))
]
QUICK = {
    "train": ["--set", "epochs=3"],
    "compare": ["--set", "epochs=3", "--runs", "2"],
    "search": ["--trials", "2", "--runs", "1"],
    "reproduce": ["--datasets", "debian", "--methods", "mlp", "--runs", "1", "--jobs", "1"],
}
MINUTES = "0.02"
"""The time in which ``auto`` finds the best model."""
IF_THERE_IS_TIME = {"fold 1"}  # shown if contenders have completed more than one
FACEBOOK = "facebook100-Reed98.mat"


@pytest.mark.usefixtures("folder", "quick", "single_thread")
@pytest.mark.parametrize("page", EXAMPLES)
def test_a_page_can_be_followed(page, request, monkeypatch, capsys) -> None:
    monkeypatch.setattr(cli.console.out, "width", 100)
    if FACEBOOK in text_of(page):
        shutil.copy(request.getfixturevalue("data_root") / "practice" / FACEBOOK, FACEBOOK)
    names: dict[str, object] = {}
    for block in blocks_of(page):
        if block.language == "python" and not block.needs:
            run_python(block.code, name_of(page), names)
        for command in commands_in(block) if not block.needs else ():
            printed = run_command(command, monkeypatch, capsys)
            if block.language == "text":
                assert headings(block.code)
                assert headings(block.code) - IF_THERE_IS_TIME <= headings(printed), command


def run_python(code: str, name: str, names: dict[str, object]) -> None:
    """Run a block with what the blocks before it have defined; a comment after ``print`` is what it prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code.replace("minutes=5", f"minutes={MINUTES}"), name, "exec"), names)
    assert printed.getvalue().splitlines() == re.findall(r"^print\(.*\)\s+# (.*)$", code, flags=re.MULTILINE)


def run_command(command: str, monkeypatch, capsys) -> str:
    """Run a command and return what it prints. Those of other programs are only looked at."""
    program, name, *arguments = shlex.split(command, comments=True)
    if program == "make":
        assert re.search(rf"^{name}:", (ROOT / "Makefile").read_text(), flags=re.MULTILINE), command
        return ""
    if program == "pip":
        extras = re.findall(r"gcnsl\[(\w+)\]", command)
        assert all(re.search(rf"^{extra} = \[", (ROOT / "pyproject.toml").read_text(), re.M) for extra in extras)
        return ""
    assert program == "gcnsl", command
    tries_many = name == "train" and "--method" not in arguments
    quick = ["--quality", "fast", "--minutes", MINUTES] if tries_many else QUICK.get(name, [])
    trials = ["--trials", "1"] if "beyond" in arguments else []
    monkeypatch.setattr(sys, "argv", ["gcnsl", name, *arguments, *quick, *trials])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    printed = capsys.readouterr()
    assert not stop.value.code, f"{command}: {printed.err}"
    return printed.out


def headings(text: str) -> set[str]:
    """The headings of tables, and the first column of those that have none."""
    lines = text.splitlines()
    cells = [cell.strip() for line in lines if line.startswith("┃") for cell in line.split("┃")]
    return {*cells, *([] if cells else [line.split("│")[1].strip() for line in lines if line.startswith("│")])}
