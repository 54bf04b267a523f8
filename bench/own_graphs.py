"""``auto`` beside what a person would otherwise try first, on graphs as people have them.

    python bench/own_graphs.py [--graphs texas,minesweeper] [--splits 3] [--minutes 5] [--only references|auto]

The references learn from training and validation nodes where they need no validation (logistic regression and boosted
trees of scikit-learn, on features, neighbours' means of one and two steps and the degree; label propagation), and stop
early by validation nodes otherwise (torch_geometric's GCN and SAGE, two layers of 64). ``auto`` is given the same nodes
and so many minutes. Every split is written to ``bench/results/own_graphs.json`` when it is done, and is not measured
again; run it on idle cores. Prints a table of mean test accuracy and ROC-AUC, in Markdown.
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from torch.nn import functional
from torch_geometric.data import Data
from torch_geometric.nn import GCN, GraphSAGE
from torch_geometric.nn.models import LabelPropagation

import gcnsl
from gcnsl.graph import encode_columns, from_arrays, split_masks
from gcnsl.sparse import to_scipy

RESULTS = Path(__file__).parent / "results" / "own_graphs.json"
GRAPHS = {
    "minesweeper": {"split": "stored"},
    "chameleon-filtered": {"split": "stored", "directed": True},
    "squirrel-filtered": {"split": "stored", "directed": True},
    "facebook100-reed98": {"split": "random"},
    "twitch-ptbr": {"split": "random"},
    "debian": {"split": "random"},
    "actor": {"split": "geom-gcn"},
    "texas": {"split": "geom-gcn"},
    "debian without features": {"split": "random"},
    "twitch-ptbr without features": {"split": "random"},
}
"""Each graph with the arguments of ``gcnsl.load``."""
EPOCHS, PATIENCE = 500, 50


def graph_of(title: str) -> Data:
    """A graph by its title, with splits."""
    name, _, without = title.partition(" without ")
    data = gcnsl.load(name, **GRAPHS[title])
    if without:
        masks = {part: data[part] for part in ("train_mask", "val_mask", "test_mask")}
        data = from_arrays(None, data.edge_index, y=data.y, class_names=data.class_names, **masks)
    return data


def neighbour_columns(data: Data) -> NDArray[np.float32]:
    """Features, neighbours' means of one and two steps, and the degree (n × (3d + 1))."""
    n = data.num_nodes
    links = sparse.csr_matrix((np.ones(data.edge_index.shape[1]), data.edge_index.numpy()), shape=(n, n))
    degree = np.asarray(links.sum(axis=1)).ravel()
    mean = sparse.diags(1 / np.maximum(degree, 1)) @ links
    x = sparse.csr_matrix(to_scipy(data.x)) if data.num_features else sparse.csr_matrix((n, 0))
    steps = [x, mean @ x, mean @ mean @ x, sparse.csr_matrix(degree[:, None])]
    return sparse.hstack(steps).toarray().astype(np.float32)


def by_scikit_learn(make: Callable[[], Any]) -> Callable[..., NDArray[Any]]:
    """A classifier of scikit-learn on :func:`neighbour_columns`; it learns from training and validation nodes."""

    def probabilities(data: Data, train: NDArray[np.bool_], val: NDArray[np.bool_], seed: int) -> NDArray[Any]:
        columns, known, y = neighbour_columns(data), train | val, data.y.numpy()
        classifier = make().fit(columns[known], y[known])
        found = np.zeros((data.num_nodes, len(data.class_names)))
        found[:, classifier.classes_] = classifier.predict_proba(columns)
        return found

    return probabilities


def label_propagation(data: Data, train: NDArray[np.bool_], val: NDArray[np.bool_], seed: int) -> NDArray[Any]:
    """50 rounds of torch_geometric's label propagation, which learns from training and validation nodes."""
    known, y = torch.from_numpy(train | val), data.y.clamp(min=0)
    found = LabelPropagation(num_layers=50, alpha=0.9)(y, data.edge_index, mask=known)
    return (found / found.sum(dim=1, keepdim=True).clamp(min=1e-12)).numpy()


def by_torch_geometric(network: type[torch.nn.Module]) -> Callable[..., NDArray[Any]]:
    """Two layers of 64 columns; the degree if there are no features. Validation nodes decide when to stop."""

    def probabilities(data: Data, train: NDArray[np.bool_], val: NDArray[np.bool_], seed: int) -> NDArray[Any]:
        torch.manual_seed(seed)
        columns = to_scipy(data.x).toarray() if data.num_features else neighbour_columns(data)
        x, y = torch.from_numpy(np.asarray(columns, dtype=np.float32)), data.y
        model = network(x.shape[1], 64, num_layers=2, out_channels=len(data.class_names), dropout=0.5)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
        learn, check = torch.from_numpy(train), torch.from_numpy(val)
        least, best, since = float("inf"), torch.zeros(0), 0
        for _ in range(EPOCHS):
            model.train()
            optimizer.zero_grad()
            functional.cross_entropy(model(x, data.edge_index)[learn], y[learn]).backward()
            optimizer.step()
            model.eval()
            with torch.no_grad():
                logits = model(x, data.edge_index)
            loss, since = float(functional.cross_entropy(logits[check], y[check])), since + 1
            if loss < least:
                least, best, since = loss, logits.softmax(dim=1), 0
            if since == PATIENCE:
                break
        return best.numpy()

    return probabilities


REFERENCES: dict[str, Callable[..., NDArray[Any]]] = {
    "logistic": by_scikit_learn(lambda: make_pipeline(MaxAbsScaler(), LogisticRegression(max_iter=2000))),
    "boosted trees": by_scikit_learn(lambda: HistGradientBoostingClassifier(random_state=0)),
    "label propagation": label_propagation,
    "PyG GCN": by_torch_geometric(GCN),
    "PyG SAGE": by_torch_geometric(GraphSAGE),
}


def scores(probabilities: NDArray[Any], y: NDArray[Any], test: NDArray[np.bool_]) -> dict[str, float]:
    """Accuracy and ROC-AUC (one class against the others, mean over classes) on the test nodes."""
    found, truth = probabilities[test], y[test]
    auc = [roc_auc_score(truth == c, found[:, c]) for c in range(found.shape[1]) if 0 < (truth == c).sum() < len(truth)]
    return {"accuracy": float(accuracy_score(truth, found.argmax(axis=1))), "roc-auc": fmean(auc)}


def measure(title: str, split: int, minutes: float, only: str | None) -> dict[str, Any]:
    """Scores and seconds of all that is compared, on one split of a graph."""
    data, found = graph_of(title), {}
    masks = {part: mask.numpy() for part, mask in split_masks(data, split).items()}
    y, known = data.y.numpy(), torch.from_numpy(masks["train"] | masks["val"])
    if only != "auto":
        encoded = encode_columns(data, known)
        for name, probabilities in REFERENCES.items():
            began = time.perf_counter()
            result = probabilities(encoded, masks["train"], masks["val"], split)
            found[name] = scores(result, y, masks["test"]) | {"seconds": time.perf_counter() - began}
    if only != "references":
        began = time.perf_counter()
        classifier = gcnsl.NodeClassifier("auto", minutes=minutes, random_state=split).fit_graph(data, run=split)
        seconds = time.perf_counter() - began
        found["auto"] = scores(classifier.predict_proba(), y, masks["test"]) | {"seconds": seconds}
        tried = classifier.leaderboard_
        singles = tried[~tried.model.isin(["ensemble", "majority class"])]
        single = singles.sort_values("validation", ascending=False).iloc[0]
        found["best single"] = {"model": single.model, "accuracy": float(single.test)}
    return found


def table_of(results: dict[str, Any]) -> str:
    """Means over splits, in percent, accuracy / ROC-AUC, and how far ``auto`` is ahead of the best reference."""
    names = [*REFERENCES, "best single", "auto"]
    lines = [f"| | {' | '.join(names)} | ahead |", f"| --- |{' ---: |' * (len(names) + 1)}"]
    for title, splits in results.items():
        means = {name: means_of([run[name] for run in splits.values() if name in run]) for name in names}
        if "accuracy" not in means["auto"]:
            continue
        ahead = means["auto"]["accuracy"] - max(means[name].get("accuracy", 0.0) for name in REFERENCES)
        cells = [" / ".join(f"{value:.1f}" for value in means[name].values()) or "–" for name in names]
        lines.append(f"| {title} ({len(splits)}) | {' | '.join(cells)} | {ahead:+.1f} |")
    return "\n".join(lines) + "\n"


def means_of(runs: list[dict[str, Any]]) -> dict[str, float]:
    """The means of those scores that every run has, in percent."""
    return {
        metric: 100 * fmean(run[metric] for run in runs)
        for metric in ("accuracy", "roc-auc")
        if runs and all(metric in run for run in runs)
    }


def main() -> None:
    """Measure what is missing, write it, print all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", default=",".join(GRAPHS))
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--only", choices=("references", "auto"))
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    results = json.loads(options.output.read_text()) if options.output.exists() else {}
    for title in options.graphs.split(","):
        for split in range(options.splits):
            known = results.setdefault(title, {}).setdefault(str(split), {})
            if (options.only == "auto" or "logistic" in known) and (options.only == "references" or "auto" in known):
                continue
            part = "auto" if "logistic" in known else options.only
            known |= measure(title, split, options.minutes, part)
            options.output.write_text(json.dumps(results, indent=1) + "\n")
            print(title, split, {name: round(100 * value["accuracy"], 1) for name, value in known.items()}, flush=True)
    print(table_of(results))


if __name__ == "__main__":
    main()
