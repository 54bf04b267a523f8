"""``auto`` beside what a person would otherwise try, on graphs as people have them.

    python bench/own_graphs.py [--graphs texas,german] [--minutes 5] [--split 0] [--jobs 8] [--until 570]
    python bench/own_graphs.py --ways "deep GAT,deep GCN" --device cuda --jobs 4 --cores 1

Each *cell* is one way on one split of a graph: ``auto`` with quality ``good`` or ``fast``, or a reference:

- logistic regression and boosted trees of scikit-learn (features, neighbours' means of one and two steps, degree) and
  label propagation, which need no validation nodes and learn from them, too;
- PyTorch Geometric's GCN and GraphSAGE, two layers of 64, which stop early by validation nodes;
- LightGBM, up to 1,000 rounds, on more columns of neighbours, with and without the shares of their known labels and
  with 7 or 31 leaves: the best of these four on validation nodes;
- deep residual GAT and GCN of PyTorch Geometric's layers, twelve settings each or as many as fit into the minutes of
  ``good``: the best on validation nodes.

``--minutes`` are those of ``good`` and of the deep networks; ``fast`` has a fifth of them. With ``--device cuda``, the
networks of references are trained on a GPU, where all twelve settings end in time: this is more than two cores would
give them, and ``auto`` stays on its two.

A cell is a process of its own on ``--cores`` cores of its own, and ``--jobs`` run at a time. Each is written to
``--output`` when it is done, and not measured again. ``--until`` begins no cell that would end after so many seconds,
and ends one that has not: call it again until nothing is left. ``GCNSL_DATA`` names the data, with a folder
``strangers``; without it, these graphs are skipped. The metric is accuracy, for minesweeper ROC-AUC, as in its
literature. Prints tables in Markdown.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from scipy import sparse
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, log_loss, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from torch import nn
from torch.nn import functional
from torch_geometric.data import Data
from torch_geometric.nn import GCN, GATConv, GCNConv, GraphSAGE
from torch_geometric.nn.models import LabelPropagation

import gcnsl
from gcnsl.datasets import with_random_split
from gcnsl.graph import encode_columns, from_arrays, split_masks
from gcnsl.sparse import to_scipy

RESULTS = Path(__file__).parent / "results" / "own_graphs.json"
LOADED: dict[str, dict[str, Any]] = {
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
"""Graphs that ``gcnsl.load`` knows, each with its arguments."""
EPOCHS, PATIENCE = 500, 50
SCORES = "accuracy", "roc-auc", "log-loss", "seconds"
FAST, GOOD = "fast", "good"
Probabilities = NDArray[Any]


def air_routes(folder: Path) -> Data:
    """Airports and flights; the class is the continent, and coordinates and countries are left out."""
    nodes = pd.read_csv(folder / "air-routes-latest-nodes.csv", keep_default_na=False)
    links = pd.read_csv(folder / "air-routes-latest-edges.csv", keep_default_na=False)
    continents = nodes[nodes["~label"] == "continent"].set_index("~id")["code:string"]
    contains = links[(links["~label"] == "contains") & links["~from"].isin(continents.index)]
    nodes["continent"] = nodes["~id"].map(contains.set_index("~to")["~from"].map(continents))
    nodes, links = nodes[nodes["~label"] == "airport"], links[links["~label"] == "route"]
    columns = ["runways:int", "longest:int", "elev:int"]
    nodes, links = nodes.astype(dict.fromkeys(columns, float)), links.astype({"dist:int": float})
    return gcnsl.from_tables(
        nodes, links, id="~id", label="continent", unknown=[], features=columns, source="~from", target="~to"
    )


def larva(folder: Path) -> Data:
    """Neurons and synapses; the class is the kind of neuron, and columns that are the class again are left out."""
    nodes = pd.read_csv(folder / "meta_data.csv.gz", low_memory=False).rename(columns={"Unnamed: 0": "id"})
    nodes = nodes.drop_duplicates("id")
    edges = pd.read_csv(folder / "G_edgelist.txt.gz", sep=" ", names=["source", "target", "weight"])
    edges = edges[edges["source"].isin(nodes["id"]) & edges["target"].isin(nodes["id"])]
    columns = ["hemisphere", "axon_output", "axon_input", "dendrite_output", "dendrite_input"]
    return gcnsl.from_tables(nodes, edges, label="simple_group", unknown=["unk"], features=columns, directed=True)


def german(folder: Path) -> Data:
    """Customers who are good (1) or not (-1), joined by likeness."""
    nodes = pd.read_csv(folder / "german.csv").rename_axis("id").reset_index()
    edges = pd.read_csv(folder / "german_edges.txt.gz", sep=" ", names=["source", "target"]).astype(int)
    return gcnsl.from_tables(nodes, edges, label="GoodCustomer", unknown=[])


STRANGERS: dict[str, Callable[[Path], Data]] = {
    "air-routes": air_routes,
    "larva-connectome": larva,
    "german": german,
    "blogcatalog": lambda folder: gcnsl.load(folder / "blogcatalog.npz"),
    "amazon-photo": lambda folder: gcnsl.load(folder / "amazon_photo.npz"),
    "pygod-books": lambda folder: gcnsl.load(folder / "books.pt.zip"),
}
"""Graphs as their owners publish them."""
GRAPHS = [*LOADED, *STRANGERS]


def graph_of(title: str) -> Data:
    """A graph by its title, with splits."""
    if title in STRANGERS:
        data = STRANGERS[title](Path(os.environ["GCNSL_DATA"]) / "strangers" / title)
        return with_random_split(data, runs=10, seed=0)
    name, _, without = title.partition(" without ")
    data = gcnsl.load(name, **LOADED[title])
    if without:
        masks = {part: data[part] for part in ("train_mask", "val_mask", "test_mask")}
        data = from_arrays(None, data.edge_index, y=data.y, class_names=data.class_names, **masks)
    return data


def metric_of(title: str) -> str:
    """What ways are chosen and compared by."""
    return "roc-auc" if title == "minesweeper" else "accuracy"


class Split:
    """One split of a graph, as the references read it."""

    def __init__(self, data: Data, number: int, metric: str, minutes: float, device: str) -> None:
        self.device = device
        masks = split_masks(data, number)
        self.data = encode_columns(data, masks["train"] | masks["val"])
        self.train, self.val, self.test = (masks[part].numpy() for part in ("train", "val", "test"))
        self.y, self.number, self.metric, self.minutes = self.data.y.numpy(), number, metric, minutes
        self.n, self.classes = self.data.num_nodes, len(self.data.class_names)
        ends = self.data.edge_index.numpy()
        ends = ends[:, ends[0] != ends[1]]
        self.links = sparse.csr_array((np.ones(ends.shape[1], np.float32), ends), shape=(self.n, self.n))
        self.degree = np.asarray(self.links.sum(axis=1)).ravel()
        self.mean = sparse.csr_array(sparse.diags_array(1 / np.maximum(self.degree, 1)) @ self.links)
        empty = sparse.csr_array((self.n, 0), dtype=np.float32)
        self.x = sparse.csr_array(to_scipy(self.data.x)) if self.data.num_features else empty

    def scores(self, probabilities: Probabilities, nodes: NDArray[np.bool_]) -> dict[str, float]:
        """Accuracy, ROC-AUC, one class against the others, and log loss on some nodes."""
        truth, found = self.y[nodes], np.asarray(probabilities, np.float64)[nodes]
        found = found.clip(1e-7) / found.clip(1e-7).sum(axis=1, keepdims=True)
        one_of = [c for c in range(self.classes) if 0 < np.count_nonzero(truth == c) < len(truth)]
        area = [roc_auc_score(truth == c, found[:, c]) for c in (one_of[-1:] if self.classes == 2 else one_of)]
        return {
            "accuracy": float(accuracy_score(truth, found.argmax(axis=1))),
            "roc-auc": fmean(area),
            "log-loss": float(log_loss(truth, found, labels=range(self.classes))),
        }

    def best(self, found: list[Probabilities]) -> Probabilities:
        """That of several probabilities which is best on validation nodes."""
        return max(found, key=lambda each: self.scores(each, self.val)[self.metric])

    def plain_columns(self) -> Probabilities:
        """Features, neighbours' means of one and two steps, and the degree (n × (3d + 1))."""
        steps = [self.x, self.mean @ self.x, self.mean @ self.mean @ self.x, sparse.csr_array(self.degree[:, None])]
        return sparse.hstack(steps).toarray().astype(np.float32)

    def place(self) -> Probabilities:
        """32 singular vectors of D^-1/2 A D^-1/2 and the log degree."""
        root = sparse.diags_array(1 / np.sqrt(np.maximum(self.degree, 1)))
        vectors = TruncatedSVD(min(32, self.n - 1), random_state=0).fit_transform(root @ self.links @ root)
        return np.column_stack([vectors / (vectors.std(axis=0) + 1e-9), np.log1p(self.degree)]).astype(np.float32)


def by_scikit_learn(make: Callable[[], Any]) -> Callable[[Split], Probabilities]:
    """A classifier of scikit-learn on plain columns; it learns from training and validation nodes."""

    def probabilities(split: Split) -> Probabilities:
        columns, known = split.plain_columns(), split.train | split.val
        classifier = make().fit(columns[known], split.y[known])
        found = np.zeros((split.n, split.classes))
        found[:, classifier.classes_] = classifier.predict_proba(columns)
        return found

    return probabilities


def label_propagation(split: Split) -> Probabilities:
    """50 rounds of torch_geometric's label propagation, which learns from training and validation nodes."""
    known, y = torch.from_numpy(split.train | split.val), split.data.y.clamp(min=0)
    found = LabelPropagation(num_layers=50, alpha=0.9)(y, split.data.edge_index, mask=known)
    return (found / found.sum(dim=1, keepdim=True).clamp(min=1e-12)).numpy()


def lightgbm(split: Split) -> Probabilities:
    """The best of four LightGBMs: with and without neighbours' known labels, and with 7 or 31 leaves."""
    import lightgbm as library

    x: Any = split.x.toarray() if split.x.shape[1] <= 300 else TruncatedSVD(128, random_state=0).fit_transform(split.x)
    once, place, log_degree = split.mean @ x, split.place(), np.log1p(split.degree)
    starts, linked = split.links.indptr[:-1][split.degree > 0], split.degree > 0
    extremes = np.full((2, *np.shape(x)), np.nan, dtype=np.float32)
    for column in range(np.shape(x)[1] if linked.any() else 0):
        values = x[split.links.indices, column]
        extremes[0, linked, column] = np.maximum.reduceat(values, starts)
        extremes[1, linked, column] = np.minimum.reduceat(values, starts)
    rank = np.full(split.n, 1.0)
    for _ in range(50):
        rank = 0.15 + 0.85 * (split.mean.T @ rank)
    blocks = [x, once, split.mean @ once, *extremes, place, split.mean @ place, np.log(rank)[:, None]]
    base = np.hstack([*blocks, (split.mean @ log_degree)[:, None]]).astype(np.float32)
    known = np.zeros((split.n, split.classes), dtype=np.float32)
    known[split.train, split.y[split.train]] = 1
    prior, shares = known.sum(axis=0) / known.sum(), []
    for counts in (split.links @ known, split.links @ (split.links @ known) - split.degree[:, None] * known):
        total = counts.sum(axis=1, keepdims=True)
        shares += [(counts + 2 * prior) / (total + 2), total]
    found = []
    for columns in (base, np.hstack([base, *shares])):
        for leaves in (7, 31):
            quiet = {"num_threads": 1, "verbosity": -1, "random_state": 0}
            model = library.LGBMClassifier(n_estimators=1000, num_leaves=leaves, learning_rate=0.05, **quiet)
            val = columns[split.val], split.y[split.val]
            seen = np.isin(val[1], split.y[split.train])
            stop = library.early_stopping(50, verbose=False)
            model.fit(
                columns[split.train], split.y[split.train], eval_set=[(val[0][seen], val[1][seen])], callbacks=[stop]
            )
            found.append(np.zeros((split.n, split.classes)))
            found[-1][:, model.classes_] = model.predict_proba(columns)
    return split.best(found)


def trained(split: Split, model: nn.Module, x: torch.Tensor, *, until: float, **options: float) -> Probabilities:
    """Full-batch training with early stopping on the validation loss, until a time at most."""
    optimizer = torch.optim.Adam(model.to(split.device).parameters(), **options)
    parts = split.data.y, split.data.edge_index, x, torch.from_numpy(split.train), torch.from_numpy(split.val)
    y, edge_index, x, learn, check = (part.to(split.device) for part in parts)
    least, best, since = float("inf"), torch.full((split.n, split.classes), 1 / split.classes), 0
    for _ in range(EPOCHS):
        model.train()
        optimizer.zero_grad()
        functional.cross_entropy(model(x, edge_index)[learn], y[learn]).backward()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            logits = model(x, edge_index)
        loss, since = float(functional.cross_entropy(logits[check], y[check])), since + 1
        if loss < least:
            least, best, since = loss, logits.softmax(dim=1), 0
        if since == PATIENCE or time.perf_counter() > until:
            break
    return best.cpu().numpy()


def by_torch_geometric(network: type[nn.Module]) -> Callable[[Split], Probabilities]:
    """Two layers of 64 columns; plain columns if there are no features."""

    def probabilities(split: Split) -> Probabilities:
        torch.manual_seed(split.number)
        until = time.perf_counter() + 60 * split.minutes
        x = torch.from_numpy(split.x.toarray().astype(np.float32) if split.x.shape[1] else split.plain_columns())
        model = network(x.shape[1], 64, num_layers=2, out_channels=split.classes, dropout=0.5)
        return trained(split, model, x, until=until, lr=0.01, weight_decay=5e-4)

    return probabilities


class Residual(nn.Module):
    """x ← dropout(ReLU(LayerNorm(conv(x) + W x))) + x between linear maps."""

    def __init__(self, conv: str, d: int, classes: int, *, layers: int, width: int, rate: float) -> None:
        super().__init__()
        self.first, self.last, self.rate = nn.Linear(d, width), nn.Linear(width, classes), rate
        make = (lambda: GATConv(width, width // 4, heads=4)) if conv == "GAT" else (lambda: GCNConv(width, width))
        self.convs = nn.ModuleList(make() for _ in range(layers))
        self.maps = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(layers))

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        """Logits."""
        h = self.first(x)
        for conv, own, norm in zip(self.convs, self.maps, self.norms, strict=True):
            h = h + functional.dropout(norm(conv(h, edge_index) + own(h)).relu(), self.rate, self.training)
        return self.last(h)


def deep(conv: str) -> Callable[[Split], Probabilities]:
    """The best of twelve deep residual networks, or of as many as there is time for."""

    def probabilities(split: Split) -> Probabilities:
        torch.manual_seed(split.number)
        until, found = time.perf_counter() + 60 * split.minutes, []
        x = split.x.toarray().astype(np.float32)
        columns = np.hstack([x, split.place()]) if x.shape[1] < 200 else x
        scaled = torch.from_numpy((columns - columns.mean(axis=0)) / (columns.std(axis=0) + 1e-6))
        settings = [(layers, width, rate) for width in (128, 256) for layers in (3, 2, 5) for rate in (0.3, 0.6)]
        for layers, width, rate in settings:
            if found and time.perf_counter() > until:
                break
            model = Residual(conv, scaled.shape[1], split.classes, layers=layers, width=width, rate=rate)
            found.append(trained(split, model, scaled, until=until, lr=0.003))
        return split.best(found)

    return probabilities


REFERENCES: dict[str, Callable[[Split], Probabilities]] = {
    "logistic": by_scikit_learn(lambda: make_pipeline(MaxAbsScaler(), LogisticRegression(max_iter=2000))),
    "boosted trees": by_scikit_learn(lambda: HistGradientBoostingClassifier(random_state=0)),
    "label propagation": label_propagation,
    "PyG GCN": by_torch_geometric(GCN),
    "PyG SAGE": by_torch_geometric(GraphSAGE),
    "LightGBM": lightgbm,
    "deep GAT": deep("GAT"),
    "deep GCN": deep("GCN"),
}
WAYS = [*REFERENCES, FAST, GOOD]


def measure(title: str, number: int, way: str, minutes: Mapping[str, float], device: str) -> dict[str, Any]:
    """Scores on test nodes and seconds of one cell."""
    data, metric = graph_of(title), metric_of(title)
    split, found = Split(data, number, metric, minutes[GOOD], device), dict[str, Any]()
    began = time.perf_counter()
    if way in REFERENCES:
        probabilities = REFERENCES[way](split)
        if device != "cpu" and way.startswith(("deep", "PyG")):
            found["device"] = device
    else:
        wanted: dict[str, Any] = {"metric": metric, "minutes": minutes[way], "random_state": number, "device": "cpu"}
        classifier = gcnsl.NodeClassifier("auto", quality=way, **wanted).fit_graph(data, run=number)
        probabilities, board = classifier.predict_proba(), classifier.leaderboard_
        found["weights"] = board.groupby("method")["weight"].sum().loc[lambda share: share > 0].to_dict()
        found["contenders"] = len(board)
    found["seconds"] = time.perf_counter() - began
    return split.scores(probabilities, split.test) | found


def usual_seconds(way: str, minutes: Mapping[str, float], device: str) -> float:
    """How long a cell takes at most, as a rule, imports and reading included."""
    quick = way in ("logistic", "boosted trees", "label propagation", "LightGBM")
    quick |= way in REFERENCES and device != "cpu"
    return 30 + 60 * (1 if quick else minutes[FAST if way == FAST else GOOD])


def run(cells: list[tuple[str, int, str]], options: argparse.Namespace, minutes: Mapping[str, float]) -> None:
    """Measure cells in processes with cores of their own, and write each when it is done."""
    began, lock, results = time.monotonic(), threading.Lock(), read(options.output)
    cores = sorted(os.sched_getaffinity(0))

    def work(slot: int) -> None:
        own = [cores[(slot * options.cores + number) % len(cores)] for number in range(options.cores)]
        while True:
            with lock:
                left = options.until - (time.monotonic() - began)
                cell = next((each for each in cells if usual_seconds(each[2], minutes, options.device) <= left), None)
                if cell is None:
                    return
                cells.remove(cell)
            given = [f"--minutes={minutes[GOOD]}", f"--device={options.device}", "--cell", json.dumps(cell)]
            try:
                done = subprocess.run(
                    ["taskset", "-c", ",".join(map(str, own)), sys.executable, "-W", "ignore", __file__, *given],
                    stdout=subprocess.PIPE,
                    text=True,
                    check=False,
                    env=os.environ | {"OMP_NUM_THREADS": str(options.cores), "OMP_WAIT_POLICY": "PASSIVE"},
                    timeout=None if math.isinf(left) else left,
                )
            except subprocess.TimeoutExpired:
                return
            with lock:
                if done.returncode:
                    print(*cell, "has failed", flush=True)
                    continue
                title, number, way = cell
                found = json.loads(done.stdout.splitlines()[-1])
                results.setdefault(title, {}).setdefault(str(number), {})[way] = found
                options.output.write_text(json.dumps(results, indent=1) + "\n")
                shown = {name: round(value, 3) for name, value in found.items() if isinstance(value, float)}
                print(*cell, shown, flush=True)

    threads = [threading.Thread(target=work, args=(slot,)) for slot in range(options.jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def read(path: Path) -> dict[str, Any]:
    """What was measured before: by graph, split and way."""
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return found


def report(results: dict[str, Any], minutes: Mapping[str, float]) -> str:
    """Means over splits, in percent, and what the figures say."""
    rows, ahead, fast_ahead, sharper, walls = [], {}, {}, {}, list[float]()
    for title in [title for title in GRAPHS if title in results]:
        splits = [split for split in results[title].values() if GOOD in split]
        known = [way for way in WAYS if splits and all(way in split for split in splits)]
        if GOOD not in known or len(known) == 1:
            continue
        metric = metric_of(title)
        mean = {way: {m: fmean(s[way][m] for s in splits) for m in SCORES} for way in known}
        best = max((way for way in known if way in REFERENCES), key=lambda way: mean[way][metric])
        ahead[title] = difference(splits, GOOD, best, metric)
        if {FAST, "LightGBM"} <= set(known):
            fast_ahead[title] = difference(splits, FAST, "LightGBM", metric)
        sharper[title] = mean[GOOD]["log-loss"] < min(mean[way]["log-loss"] for way in known if way in REFERENCES)
        for way in {FAST, GOOD} & set(known):
            walls += [split[way]["seconds"] - 60 * minutes[way] for split in splits]
        cells = [
            f"{100 * mean[w]['accuracy']:.1f} / {100 * mean[w]['roc-auc']:.1f}" if w in mean else "–" for w in WAYS
        ]
        plus = fmean(split[GOOD]["weights"].get("gcn-sl-plus", 0.0) for split in splits)
        gap = f"{ahead[title][0]:+.1f} ± {ahead[title][1]:.1f} ({best})".replace(" ± nan", "")
        losses = min(mean[way]["log-loss"] for way in known if way in REFERENCES)
        end = f"{mean[GOOD]['log-loss']:.3f} ({losses:.3f}) | {mean[GOOD]['seconds']:.0f} s | {plus:.0%}"
        rows.append(f"| {title} ({len(splits)}) | {' | '.join(cells)} | {gap} | {end} |")
    head = (
        f"| | {' | '.join(WAYS)} | good − best reference | log loss of good (best reference) | good's time | GCN-SL+ |"
    )
    lines = [head, "| --- |" + " ---: |" * (len(WAYS) + 4), *rows, ""]
    if not rows:
        return "nothing is complete yet\n"
    for what, gaps in (("good − best reference", ahead), ("fast − LightGBM", fast_ahead)):
        if gaps:
            low = [f"{title} {gap:+.1f} ± {noise:.1f}" for title, (gap, noise) in gaps.items() if gap < -0.3]
            leads = f"ahead on {sum(gap > 0 for gap, _ in gaps.values())} of {len(gaps)}"
            mean_gap = fmean(gap for gap, _ in gaps.values())
            lines.append(f"- {what}: {leads}, mean {mean_gap:+.1f}; below -0.3: {', '.join(low) or 'none'}")
    lines.append(f"- log loss of good is better than every reference's on {sum(sharper.values())} of {len(sharper)}")
    late = [wall for wall in walls if wall > 5]
    lines.append(
        f"- wall time minus budget: {min(walls):+.1f} to {max(walls):+.1f} s; {len(late)} runs over by more than 5"
    )
    return "\n".join(lines) + "\n"


def difference(splits: list[Any], one: str, other: str, metric: str) -> tuple[float, float]:
    """By how many points one way is better than another, and the standard error over splits."""
    apart = [100 * (split[one][metric] - split[other][metric]) for split in splits]
    return fmean(apart), stdev(apart) / len(apart) ** 0.5 if len(apart) > 1 else float("nan")


def main() -> None:
    """Measure what is missing, or one cell; print all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", default=",".join(GRAPHS))
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--split", type=int, help="this one alone")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--until", type=float, default=float("inf"))
    parser.add_argument("--minutes", type=float, default=5.0, help="of good and of deep networks; fast has a fifth")
    parser.add_argument("--device", default="cpu", help="of the references' networks (default: cpu)")
    parser.add_argument("--output", type=Path, help="default: bench/results/own_graphs.json, or one for the minutes")
    parser.add_argument("--cell", type=json.loads, help=argparse.SUPPRESS)
    options = parser.parse_args()
    minutes = {FAST: options.minutes / 5, GOOD: options.minutes}
    if options.cell:
        print(json.dumps(measure(*options.cell, minutes, options.device)))
        return
    if options.output is None:
        options.output = RESULTS if options.minutes == 5 else RESULTS.with_stem(f"own_graphs-{options.minutes:g}")
    results, numbers = read(options.output), range(options.splits) if options.split is None else [options.split]
    titles = options.graphs.split(",")
    if not (Path(os.environ.get("GCNSL_DATA", "")) / "strangers").is_dir():
        titles = [title for title in titles if title not in STRANGERS]
    cells = [(title, number, way) for number in numbers for title in titles for way in options.ways.split(",")]
    cells = [cell for cell in cells if cell[2] not in results.get(cell[0], {}).get(str(cell[1]), {})]
    options.output.parent.mkdir(parents=True, exist_ok=True)
    run(sorted(cells, key=lambda cell: -usual_seconds(cell[2], minutes, options.device)), options, minutes)
    print(report(read(options.output), minutes))


if __name__ == "__main__":
    main()
