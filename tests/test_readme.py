import contextlib
import io
import re
import shlex
import sys
from pathlib import Path

import pandas as pd
import pytest

import gcnsl
from gcnsl import cli

README = Path(__file__).parents[1] / "README.md"
TEXT = README.read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL)
COMMANDS = re.findall(r"^(?:    |\$ )(gcnsl .*)$", TEXT, flags=re.MULTILINE)
SHOWN = dict(re.findall(r"^\$ (gcnsl .*)\n((?:(?!\$ |```).*\n)+)", TEXT, flags=re.MULTILINE))
QUICK = {
    "train": ["--set", "epochs=3"],
    "compare": ["--set", "epochs=3", "--runs", "2"],
    "search": ["--trials", "2", "--runs", "1"],
    "reproduce": ["--datasets", "debian", "--methods", "mlp", "--runs", "1"],
}


@pytest.mark.parametrize("example", EXAMPLES, ids=range(len(EXAMPLES)))
def test_python_examples_run_and_print_what_they_say(example: str) -> None:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(example, str(README), "exec"), {})
    promised = re.findall(r"^print\(.*\)\s+# (.*)$", example, flags=re.MULTILINE)
    assert printed.getvalue().splitlines() == promised


def test_there_are_examples() -> None:
    assert EXAMPLES
    assert {command.split()[1] for command in COMMANDS} >= {
        "inspect",
        "train",
        "predict",
        "explain",
        "compare",
        "search",
        "reproduce",
        "report",
    }


@pytest.fixture
def people(tmp_path, monkeypatch):
    """A folder with the two tables that the commands speak of."""
    data = gcnsl.synthetic(n=40, classes=2, degree=3, features=6)
    names = ["ann", *(f"p{i}" for i in range(1, 40))]
    nodes = pd.DataFrame({"id": names, "label": data.y.numpy()}).join(pd.DataFrame(data.x.numpy()).add_prefix("f"))
    nodes.to_csv(tmp_path / "nodes.csv", index=False)
    ends = data.edge_index.numpy()
    edges = pd.DataFrame({"source": [names[i] for i in ends[0]], "target": [names[i] for i in ends[1]]})
    edges.to_csv(tmp_path / "edges.csv", index=False)
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("people", "single_thread")
def test_shell_examples_run_and_print_what_they_show(monkeypatch, capsys) -> None:
    monkeypatch.setattr(cli.console.out, "width", 100)
    for command in COMMANDS:
        _, name, *arguments = shlex.split(command, comments=True)
        tries_many = name == "train" and "--method" not in arguments
        quick = ["--quality", "fast", "--minutes", "0.05"] if tries_many else QUICK.get(name, [])
        monkeypatch.setattr(sys, "argv", ["gcnsl", name, *arguments, *quick])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        printed = capsys.readouterr()
        assert not stop.value.code, f"{command}: {printed.err}"
        if command in SHOWN:
            assert headings(SHOWN[command])
            assert headings(SHOWN[command]) <= headings(printed.out), command


def headings(text: str) -> set[str]:
    """The headings of tables, and the first column of those that have none."""
    lines = text.splitlines()
    cells = [cell.strip() for line in lines if line.startswith("┃") for cell in line.split("┃")]
    return {*cells, *([] if cells else [line.split("│")[1].strip() for line in lines if line.startswith("│")])}
