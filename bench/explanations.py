"""Explanations against truth: how often the reason that is found is the one by which the graph was made.

    python bench/explanations.py [METHOD ...] [--nodes 25]

Three graphs whose classes have one known reason. *Column*: the column ``income`` of a node; five others mean nothing.
*Neighbour*: whether one of a customer's shops is ``stolen``; which neighbour it is, is asked. *Edge column*: the
``amount`` of its edges, of which the mean, the maximum and sums are columns. A reason is found if nothing adds more to
the log-odds of the predicted class, among columns or among edges; ``largest`` is how often nothing against the class is
larger, either. Nodes are drawn from the test nodes that are predicted correctly; a method that reaches less than 70 %
there has not learned the reason, and is left out. Prints a table of all methods that were ever measured, from
``bench/results/explanations.json``, in which those named are replaced.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import gcnsl
from gcnsl import NodeClassifier
from gcnsl.datasets import with_random_split
from gcnsl.methods import METHODS

RESULTS = Path(__file__).parent / "results" / "explanations.json"
LEARNED, N, SHOPS = 0.7, 900, 120

Told = list[tuple[float, bool]]
"""What each column or edge of a node adds to the log-odds of its class, and whether it is the reason."""
Case = tuple[Any, Callable[[Any, int], Told]]


def of_a_column() -> Case:
    """A graph whose classes follow a column."""
    draw = np.random.default_rng(0)
    columns = {name: draw.normal(size=N) for name in ("income", "age", "height", "size", "score", "rate")}
    columns["income"] = 0.3 * columns["income"] + draw.choice([-1.0, 1.0], N)
    nodes = pd.DataFrame({"id": [f"n{i}" for i in range(N)], **columns})
    nodes["label"] = np.where(nodes["income"] > 0, "rich", "poor")
    ends = nodes["id"].to_numpy()[draw.integers(0, N, (2, 3 * N))]
    data = gcnsl.from_tables(nodes, pd.DataFrame({"source": ends[0], "target": ends[1]}))
    return data, lambda told, _: [(each.log_odds, each.column == "income") for each in told.contributions]


def of_a_neighbour() -> Case:
    """Customers and shops: a customer is a victim if one of its shops is stolen; shops have no class."""
    draw = np.random.default_rng(1)
    stolen = np.arange(SHOPS) < SHOPS // 4
    shops, bad_shop = [], {}
    for customer in range(N):
        own = draw.choice(np.flatnonzero(~stolen), 4, replace=False).tolist()
        if customer % 2:
            bad_shop[customer] = own[0] = int(draw.choice(np.flatnonzero(stolen)))
        shops += [(f"c{customer}", f"s{shop}") for shop in own]
    nodes = pd.DataFrame(
        {
            "id": [*(f"c{i}" for i in range(N)), *(f"s{i}" for i in range(SHOPS))],
            "stolen": [*[0] * N, *stolen.astype(int)],
            "age": draw.normal(size=N + SHOPS),
            "label": [*np.where(np.arange(N) % 2, "victim", "safe"), *[None] * SHOPS],
        }
    )
    data = gcnsl.from_tables(nodes, pd.DataFrame(shops, columns=["source", "target"]))

    def edges(told: Any, node: int) -> Told:
        return [(each.effect or 0.0, each.id == f"s{bad_shop[node]}") for each in told.original]

    return data, edges


def of_an_edge_column() -> Case:
    """A graph whose classes follow a column of the edges."""
    draw = np.random.default_rng(2)
    source = np.repeat(np.arange(N), 3)
    target = draw.integers(N, N + SHOPS, len(source))
    amount = np.where(source % 2, 80.0, 20.0) + 10 * draw.normal(size=len(source))
    nodes = pd.DataFrame({"id": np.arange(N + SHOPS), "age": draw.normal(size=N + SHOPS)})
    nodes["label"] = [*np.where(np.arange(N) % 2, "large", "small"), *[None] * SHOPS]
    data = gcnsl.from_tables(nodes, pd.DataFrame({"source": source, "target": target, "amount": amount}))
    return data, lambda told, _: [(each.log_odds, "amount" in each.name) for each in told.contributions]


CASES = {"column": of_a_column, "neighbour": of_a_neighbour, "edge column": of_an_edge_column}


def measure(method: str, case: str, nodes: int) -> dict[str, Any]:
    """The accuracy on test nodes, and the share of explained nodes whose found reason is right."""
    data, added = CASES[case]()
    if case == "edge column" and not any("amount" in name for name in data.feature_names):
        return {}
    data = with_random_split(data, seed=0, runs=1)
    how = {"minutes": 0.25} if method == "auto" else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        classifier = NodeClassifier(method, device="cpu", verbose=False, threshold=None, **how).fit_graph(data)
    predicted, test = classifier.decide(classifier.predict_proba()), data.test_mask.numpy()
    right = test & (predicted == data.y.numpy())
    accuracy = float(right[test].mean())
    if accuracy < LEARNED:
        return {"accuracy": accuracy}
    asked = right & (data.y.numpy() == data.class_names.index("victim")) if case == "neighbour" else right
    chosen = np.flatnonzero(asked)[:nodes]
    told = [added(classifier.explain(_name(classifier, node)), int(node)) for node in chosen]
    right_first = float(np.mean([max(each)[1] for each in told]))
    largest = float(np.mean([max((abs(value), is_it) for value, is_it in each)[1] for each in told]))
    return {"accuracy": accuracy, "nodes": len(told), "right": right_first, "largest": largest}


def _name(classifier: NodeClassifier, node: int) -> Any:
    return node if classifier.node_ids_ is None else classifier.node_ids_[node]


def to_markdown(results: dict[str, dict[str, Any]]) -> str:
    """The share of explained nodes whose found reason is right, as a table in Markdown."""
    lines = [f"| method | {' | '.join(CASES)} |", f"| --- |{' ---: |' * len(CASES)}"]
    for method, of_cases in results.items():
        cells = []
        for case in CASES:
            found = of_cases.get(case) or {}
            share = f"{found['right']:.0%} of {found['nodes']}" if "right" in found else "–"
            cells.append(share if share != "–" or not found else f"not learned ({found['accuracy']:.0%})")
        lines.append(f"| {method} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("methods", nargs="*", default=[*METHODS, "auto"], help="names of methods, or auto")
    parser.add_argument("--nodes", type=int, default=25, help="explained nodes of each graph")
    arguments = parser.parse_args()
    results = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    for method in arguments.methods:
        began = time.perf_counter()
        results[method] = {case: measure(method, case, arguments.nodes) for case in CASES}
        print(method, results[method], f"{time.perf_counter() - began:.0f} s", flush=True)
        RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print(to_markdown(results))


if __name__ == "__main__":
    main()
