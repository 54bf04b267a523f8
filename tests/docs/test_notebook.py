"""The tutorial's notebook runs from its first cell to its last, and saves its picture."""

import runpy

import matplotlib.pyplot as plt
import pytest

from .pages import ROOT


@pytest.mark.usefixtures("single_thread")
def test_the_notebook_runs(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    names = runpy.run_path(str(ROOT / "docs" / "tutorials" / "notebook.py"))
    plt.close("all")
    assert (tmp_path / "notebook.png").stat().st_size > 10_000
    assert names["counts"].sum() == names["test"].sum()
    assert names["truth"][names["worst"]] != names["predicted"][names["worst"]]
    assert "to the log-odds of" in capsys.readouterr().out
