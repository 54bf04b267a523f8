"""Whether standardised columns help each method, on tables of quantities that scikit-learn bundles.

    python bench/standardization.py [--runs 5]

The first 600 rows of a table are the nodes; each is linked to four others, of its own class with probability .6. Every
method is trained with its defaults, for at most 300 epochs, on the same splits, with columns standardised over the
training nodes and without, and validation accuracies are compared. Prints a table and writes
``bench/results/standardization.json``.
"""

import argparse
import json
from pathlib import Path
from statistics import fmean

import numpy as np
import torch
from rich.console import Console
from rich.progress import track
from rich.table import Table
from sklearn import datasets
from torch_geometric.data import Data

from gcnsl.datasets import with_random_split
from gcnsl.graph import from_arrays, split_masks
from gcnsl.methods import METHODS, fit
from gcnsl.runs.jobs import Preparations

RESULTS = Path(__file__).parent / "results" / "standardization.json"
TABLES = {"wine": datasets.load_wine, "cancer": datasets.load_breast_cancer, "digits": datasets.load_digits}
LINKS, SAME = 4, 0.6
MOST_ROWS = 600
EPOCHS = 300


def graph_of(name: str, runs: int) -> Data:
    """A table as a graph with random splits."""
    x, y = (part[:MOST_ROWS] for part in TABLES[name](return_X_y=True))
    generator = np.random.default_rng(0)
    alike = generator.random((len(y), LINKS)) < SAME
    ends = [
        (i, generator.choice(np.flatnonzero((y == y[i]) == same))) for i in range(len(y)) for same in alike[i].tolist()
    ]
    return with_random_split(from_arrays(x, np.array(ends).T, y), runs=runs, seed=0)


def accuracy(method: str, data: Data, runs: int, choice: str) -> float:
    """Mean validation accuracy."""
    configured = METHODS[method].with_options(standardize=choice, epochs=EPOCHS)
    inputs = Preparations(configured, data, seed=0, device=torch.device("cpu"))
    found = []
    for run in range(runs):
        masks = split_masks(data, run)
        fitted = fit(inputs.on(run), train_mask=masks["train"], val_mask=masks["val"], seed=run)
        found.append(fitted.accuracy(masks)["val"])
    return fmean(found)


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    runs = parser.parse_args().runs
    graphs = {name: graph_of(name, runs) for name in TABLES}
    names = [name for name in METHODS if name != "geom-gcn"]  # it needs an embedding of the graph first
    cells = [(method, name) for method in names for name in graphs]
    rows = [
        {"method": method, "table": name}
        | {choice: accuracy(method, graphs[name], runs, choice) for choice in ("always", "never")}
        for method, name in track(cells, console=Console(stderr=True))
    ]
    table = Table("method", *TABLES, title=f"Validation accuracy, standardised / not, {runs} runs")
    for method in names:
        own = [row for row in rows if row["method"] == method]
        table.add_row(method, *(f"{100 * row['always']:.1f} / {100 * row['never']:.1f}" for row in own))
    Console().print(table)
    RESULTS.write_text(json.dumps({"runs": runs, "results": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
