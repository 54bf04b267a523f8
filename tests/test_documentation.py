"""The examples of the how-to pages run, and so do the commands."""

import re
import shlex
import shutil
from pathlib import Path

import pandas as pd
import pytest

PAGES = Path(__file__).parents[1] / "docs" / "how-to"
COLUMNS = (PAGES / "categorical-columns.md").read_text(encoding="utf-8")


@pytest.fixture
def reed(data_root, tmp_path, monkeypatch):
    """A folder with the file that the page begins with."""
    shutil.copy(data_root / "practice" / "facebook100-Reed98.mat", tmp_path)
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("reed", "single_thread")
def test_categorical_columns(gcnsl) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", COLUMNS, flags=re.DOTALL)
    assert len(example.splitlines()) < 20
    made: dict = {}
    quickly = example.replace('NodeClassifier("h2gcn-2")', 'NodeClassifier("h2gcn-2", epochs=3)')
    assert quickly != example
    exec(compile(quickly, "categorical-columns.md", "exec"), made)
    assert made["data"].columns.kinds == {**dict.fromkeys(made["codes"], "category"), "year": "number"}
    assert len(pd.read_csv("predictions.csv")) == 962
    assert int((made["data"].y < 0).sum()) == 97
    for name in ("nodes", "edges"):
        made[name].to_csv(f"{name}.csv", index=False)
    for command in re.findall(r"^    gcnsl (.*)$", COLUMNS, flags=re.MULTILINE):
        name, *arguments = shlex.split(command)
        quick = ["--method", "mlp", "--set", "epochs=3"] if name == "train" else []
        code, _, err = gcnsl(name, *arguments, *quick)
        assert code == 0, err
