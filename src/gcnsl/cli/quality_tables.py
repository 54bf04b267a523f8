"""How good predictions are, as the commands print it: all metrics, each class, and a remark on uneven classes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.markup import escape

from gcnsl.cli.console import percent, print_table, say

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from gcnsl.evaluation.quality import Quality


def metric_facts(quality: Quality | None, metric: str | None) -> dict[str, str]:
    """All metrics, for a table of facts, the chosen one in bold; ``quality`` is None if there are no test nodes."""
    from gcnsl.training import METRICS

    if quality is None:
        return {"test accuracy": "–  [dim]no node was held back[/]"}
    facts = {}
    for name, value in quality.metrics.items():
        title, text = f"test {name}", METRICS[name].text(value)
        facts[f"[bold]{title}[/]" if name == (metric or "accuracy") else title] = text
    return facts | {"test nodes": f"{quality.nodes:,}"}


def print_classes(quality: Quality) -> None:
    """Print a table with one row per class."""
    shares = ("precision", "recall", "F1")
    rows = (
        (escape(each.name), f"{each.nodes:,}", percent(each.precision), percent(each.recall), percent(each.f1))
        for each in quality.classes
    )
    print_table(("class", "test nodes", *shares), rows, right=("test nodes", *shares))


def remark_on_imbalance(data: Data, metric: str | None, *, quiet: bool) -> None:
    """Suggest a metric in one line, if classes are uneven and none was chosen."""
    from gcnsl.evaluation import find_imbalance

    found = find_imbalance(data.y, data.class_names) if metric is None and not quiet else None
    if found is not None:
        say("Note", f"{found.reason}, so accuracy says little; consider --metric {found.metric}")
