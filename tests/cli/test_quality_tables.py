import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from gcnsl.cli import console
from gcnsl.cli.quality_tables import metric_facts, print_classes, remark_on_imbalance
from gcnsl.evaluation.quality import quality_of

QUALITY = quality_of(np.eye(3)[[0, 1, 1, 1]], np.array([0, 1, 1, 0]), ["[red]", "blue", "green"])


@pytest.mark.parametrize(("metric", "bold"), [(None, "accuracy"), ("macro-f1", "macro-f1")])
def test_the_metric_that_counts_is_in_bold(metric, bold) -> None:
    facts = metric_facts(QUALITY, metric)
    assert [name for name in facts if "bold" in name] == [f"[bold]test {bold}[/]"]
    assert facts["[bold]test accuracy[/]" if metric is None else "test accuracy"] == "75.0%"
    assert facts["test nodes"] == "4"


def test_every_class_is_a_row_whatever_it_is_called(capsys, monkeypatch) -> None:
    monkeypatch.setattr(console.out, "width", 100)
    print_classes(QUALITY)
    rows = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "│ [red] │ 2 │ 100.0% │ 50.0% │ 66.7% │" in rows
    assert "│ green │ 0 │ – │ – │ – │" in rows


def test_even_classes_need_no_remark(capsys) -> None:
    data = Data(y=torch.tensor([0, 1, 0, 1]))
    data.class_names = ["a", "b"]
    remark_on_imbalance(data, None, quiet=False)
    assert capsys.readouterr().err == ""
