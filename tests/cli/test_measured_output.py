from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from gcnsl import NodeClassifier
from gcnsl.cli import console
from gcnsl.cli.measured_output import metric_facts, print_classes, remark_on_imbalance, write_page
from gcnsl.evaluation import Measured

MEASURED = Measured(np.eye(3)[[0, 1, 1, 1]], np.array([0, 1, 1, 0]), ["[red]", "blue", "green"])


@pytest.mark.parametrize(("metric", "bold"), [(None, "accuracy"), ("macro-f1", "macro-f1")])
def test_the_metric_that_counts_is_in_bold(metric, bold) -> None:
    facts = metric_facts(MEASURED, metric)
    assert [name for name in facts if "bold" in name] == [f"[bold]test {bold}[/]"]
    assert facts["[bold]test accuracy[/]" if metric is None else "test accuracy"] == "75.0%"
    assert facts["test nodes"] == "4"


def test_every_class_is_a_row_whatever_it_is_called(capsys, monkeypatch) -> None:
    monkeypatch.setattr(console.out, "width", 100)
    print_classes(MEASURED)
    rows = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "│ [red] │ 2 │ 100.0% │ 50.0% │ 66.7% │" in rows
    assert "│ green │ 0 │ – │ – │ – │" in rows


def test_even_classes_need_no_remark(capsys) -> None:
    data = Data(y=torch.tensor([0, 1, 0, 1]))
    data.class_names = ["a", "b"]
    remark_on_imbalance(data, None, quiet=False)
    assert capsys.readouterr().err == ""


def test_the_page_is_written_and_news_of_it_printed(model, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(console, "NEWS_SECONDS", -1)
    classifier = NodeClassifier.load(model)
    measured = write_page(classifier, Path(tmp_path / "page.html"), None, name="People", seconds=0)
    assert measured.kind == "validation"
    assert "<h1>People</h1>" in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Explaining nodes: 1 of 90, about 0 s left" in capsys.readouterr().err
    write_page(classifier, Path(tmp_path / "page.html"), None, seconds=0, quiet=True)
    assert capsys.readouterr().err == ""
