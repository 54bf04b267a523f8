"""Writing the page about a model, with a bar for the nodes that are explained on it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gcnsl.cli.console import progress

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from gcnsl.estimator import NodeClassifier
    from gcnsl.evaluation.measured_nodes import MeasuredNodes

SECONDS = 30.0
"""How long nodes are explained for a page, unless something else is asked for."""


def write_page(
    classifier: NodeClassifier,
    path: Path,
    data: Data | None,
    *,
    nodes: Any = None,
    name: str | None = None,
    seconds: float = SECONDS,
    quiet: bool = False,
) -> MeasuredNodes:
    """Write the page as :func:`gcnsl.evaluation.model_page.write_model_page` does, and show what it is doing."""
    from gcnsl.evaluation.model_page import write_model_page

    with progress("Explaining nodes", seconds, unit="node", quiet=quiet) as bar:
        began = time.monotonic()

        def show(done: int, total: int) -> None:
            spent = time.monotonic() - began
            left = max(0.0, min(seconds - spent, spent * (total - done) / done))
            bar.update(completed=spent, total=spent + left, text=f"{done:,} of {total:,}", seconds_left=left)

        return write_model_page(classifier, path, data, nodes=nodes, name=name, seconds=seconds, on_progress=show)
