"""Other ways to choose the edges of GCN-SL+'s learned graph, judged by validation nodes.

    python bench/edge_choice.py [chameleon chameleon-filtered] [--splits 3]

With default settings and directions, with the structure branch and without it. *Mean degree* is what GCN-SL+ does: one
ε for all nodes, so that they have a given number of neighbours on average. *Top k* gives every node as many, the most
similar ones; it is computed with an n × n matrix here. *Annealed* begins with eight times as many neighbours and comes
down in the first 100 steps. *Loops* joins every node to itself, too. *Two heads* has two learned graphs. Prints a table
and updates ``bench/results/edge_choice.json``.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor

from gcnsl import load
from gcnsl.graph import split_masks
from gcnsl.methods import fit, prepare, resolve
from gcnsl.nn import reconnect_conv
from gcnsl.nn.reconnect_conv import SimilarityHead
from gcnsl.sparse import Matrix

RESULTS = Path(__file__).parent / "results" / "edge_choice.json"
ANNEALED_STEPS, FIRST_FACTOR = 100, 8


def top_k(head: SimilarityHead, described: Matrix, h: Tensor, **_: Any) -> Tensor:
    """The averages over the k most similar nodes of each (n × p)."""
    z = head.directions(described)
    similarity = (z @ z.T).fill_diagonal_(0).relu()
    k = min(int(head.mean_degree or 1), len(z) // 10)
    kept, column = similarity.topk(k)
    weight = torch.zeros_like(similarity).scatter(1, column, kept)
    return weight @ h / weight.sum(dim=1, keepdim=True).clamp(min=1e-12)


@contextmanager
def variant(name: str) -> Iterator[dict[str, Any]]:
    """Change how heads choose edges; gives the options to train with."""
    if name == "top k":
        with patch.object(SimilarityHead, "forward", top_k):
            yield {}
    elif name == "annealed":
        exact, steps = reconnect_conv.epsilon_for_degree, iter(range(10**9))

        def annealed(z: Tensor, degree: float) -> Tensor:
            factor = FIRST_FACTOR ** max(0.0, 1 - next(steps) / ANNEALED_STEPS)
            return exact(z, min(degree * factor, len(z) / 10))

        with patch.object(reconnect_conv, "epsilon_for_degree", annealed):
            yield {}
    elif name == "loops":
        exact_sum = reconnect_conv.reconnect_at_any_size

        def with_loops(*parts: Any, loops: bool, **options: Any) -> Tensor:
            return exact_sum(*parts, loops=True, **options)

        with patch.object(reconnect_conv, "reconnect_at_any_size", with_loops):
            yield {}
    else:
        yield {"neighbours_heads": 2} if name == "two heads" else {}


VARIANTS = ("mean degree", "top k", "annealed", "loops", "two heads")


def measure(dataset: str, name: str, *, branch: bool, splits: int) -> list[float]:
    """The validation accuracy on each split."""
    split = "geom-gcn" if dataset in ("chameleon", "squirrel") else "stored"
    data, found = load(dataset, split=split, directed=True), []
    for run in range(splits):
        with variant(name) as options:
            method = resolve("gcn-sl-plus", options={**options, "structure_branch": branch})
            prepared = prepare(method, data, seed=run, device=torch.device("cpu"))
            masks = split_masks(data, run)
            fitted = fit(prepared, train_mask=masks["train"], val_mask=masks["val"], seed=run)
            found.append(fitted.accuracy(masks)["val"])
    return found


def to_markdown(results: dict[str, dict[str, list[float]]]) -> str:
    """The mean validation accuracies, as a table in Markdown."""
    lines = [f"| | {' | '.join(VARIANTS)} |", "| --- |" + " ---: |" * len(VARIANTS)]
    for title, row in results.items():
        cells = (f"{statistics.mean(row[name]):.1%}".removesuffix("%") if name in row else "" for name in VARIANTS)
        lines.append(f"| {title} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graphs", nargs="*", default=["chameleon", "chameleon-filtered"])
    parser.add_argument("--splits", type=int, default=3)
    arguments = parser.parse_args()
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for dataset in arguments.graphs:
        for branch in (False, True):
            row = results.setdefault(f"{dataset}, {'with' if branch else 'without'} the structure branch", {})
            for name in VARIANTS:
                row[name] = measure(dataset, name, branch=branch, splits=arguments.splits)
                RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    print(to_markdown(results))


if __name__ == "__main__":
    main()
