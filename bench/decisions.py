"""Decisions about a rare class: what is found before and after, and what prediction sets hold of what they promise.

    python bench/decisions.py FOLDER [--splits 10] [--method boosted-trees]

FOLDER holds ``strangers/pygod-books/books.pt.zip``, ``practice/minesweeper.npz`` and ``practice/twitch-PTBR``. Of the
last two, labels of one class are hidden at random until 4 % of the labelled nodes are of it. *Before*: accuracy stops
training, and the likeliest class is predicted. *After*: the defaults, average precision and the threshold of the
largest F1, which is chosen on validation nodes. All is measured on the test nodes of ten random splits, the coverage of
prediction sets, too, with its standard error over the splits. Prints tables and writes
``bench/results/decisions.json``.
"""

from __future__ import annotations

import argparse
import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

import gcnsl
from gcnsl import NodeClassifier
from gcnsl.datasets import with_random_split

RESULTS = Path(__file__).parent / "results" / "decisions.json"
COVERAGES, RARE = (0.8, 0.9, 0.95), 0.04


def thinned(data: Any) -> Any:
    """The graph with labels of its rarer class hidden until 4 % of the labelled nodes are of it."""
    data, draw = copy.copy(data), np.random.default_rng(0)
    y = data.y.numpy().copy()
    counts = np.bincount(y[y >= 0], minlength=2)
    rare = int(counts.argmin())
    kept = round(RARE / (1 - RARE) * counts[1 - rare])
    y[draw.permutation(np.flatnonzero(y == rare))[kept:]] = -1
    data.update({f"{part}_mask": None for part in ("train", "val", "test")} | {"y": torch.from_numpy(y)})
    return data


def graphs(folder: Path) -> Iterator[tuple[str, Any]]:
    """The graphs by name."""
    yield "pygod-books", gcnsl.load(folder / "strangers/pygod-books/books.pt.zip")
    for name in ("minesweeper", "twitch-ptbr"):
        yield f"{name}, thinned", thinned(gcnsl.load(name, root=folder))


def measure(data: Any, method: str, run: int) -> dict[str, float]:
    """What is found of the rare class on one split, and the coverage of the sets."""
    test, truth = data.test_mask[:, run].numpy(), data.y.numpy()
    rare, found = int(np.bincount(truth[truth >= 0]).argmin()), dict[str, float]()
    how: dict[str, Any] = {"device": "cpu", "verbose": False, "random_state": run}
    for name, options in (("before", {"monitor": "accuracy", "threshold": None}), ("after", {})):
        classifier = NodeClassifier(method, **how, **options).fit_graph(data, run=run)
        said = classifier.decide(classifier.predict_proba())[test] == rare
        hits = said & (truth[test] == rare)
        found |= {f"{name} alerts": float(said.sum()), f"{name} found": float(hits.sum())}
    found["positives"] = float((truth[test] == rare).sum())
    for coverage in COVERAGES:
        sets = classifier.predict_set(coverage=coverage)[test]
        found[f"coverage {coverage}"] = float(sets[np.arange(len(sets)), truth[test]].mean())
        sets = classifier.predict_set(coverage=coverage, by_class=True)[test]
        found[f"of the rare class {coverage}"] = float(sets[truth[test] == rare, rare].mean())
    return found


def to_markdown(results: dict[str, list[dict[str, float]]]) -> str:
    """Two tables in Markdown: what is found, and coverage."""
    lines = [
        "| graph | rare test nodes | before: found / alerts | after: found / alerts |",
        "| --- | ---: | ---: | ---: |",
    ]
    mean = {
        name: {key: float(np.mean([run[key] for run in runs])) for key in runs[0]} for name, runs in results.items()
    }
    for name, of in mean.items():
        cells = (f"{of[f'{when} found']:.1f} / {of[f'{when} alerts']:.1f}" for when in ("before", "after"))
        lines.append(f"| {name} | {of['positives']:.0f} | {' | '.join(cells)} |")
    lines += [
        "",
        f"| graph | sets for | {' | '.join(f'{c:.0%}' for c in COVERAGES)} |",
        "| --- | --- | ---: | ---: | ---: |",
    ]
    for name, runs in results.items():
        for which, words in (("coverage", "all nodes"), ("of the rare class", "the rare class, `--by-class`")):
            shares = (100 * np.array([run[f"{which} {coverage}"] for run in runs]) for coverage in COVERAGES)
            cells = (f"{each.mean():.1f} ± {each.std(ddof=1) / len(each) ** 0.5:.1f}" for each in shares)
            lines.append(f"| {name} | {words} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--method", default="boosted-trees")
    arguments = parser.parse_args()
    results = {}
    for name, graph in graphs(arguments.folder):
        data = with_random_split(graph, seed=0, runs=arguments.splits)
        results[name] = [measure(data, arguments.method, run) for run in range(arguments.splits)]
        print(name, results[name][0], flush=True)
    print(to_markdown(results))
    RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
