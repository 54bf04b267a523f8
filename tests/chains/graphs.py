"""Valid graphs as people have them, drawn by a seed, with what is true of each.

Every graph is valid by what the documentation says. What is true of it (:class:`ChainGraph` has ids, labels and edges
in Python's own types) is computed without the package.
"""

from __future__ import annotations

import datetime
import decimal
import random
import string
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import scipy.sparse as sp

NEW = 3
"""Nodes that a grown graph has more than the graph of training."""
FILES = ("csv", "csv quoted", "csv bom", "csv crlf", "csv no end", "csv blank lines", "csv.gz", "csv large", "tsv")
TABLES = (*FILES, "parquet", "pq")
MEMORY = ("pandas", "arrow", "networkx", "scipy", "pyg")
SIZES = {"tiny": (20, 40), "small": (40, 120), "medium": (120, 500), "huge": (50_000, 50_000)}


# --- ids ---------------------------------------------------------------------------------------------------------

_LETTERS = string.ascii_uppercase
IDS: dict[str, Callable[[int], Any]] = {
    "counted": lambda i: i,
    "from one": lambda i: i + 1,
    "negative": lambda i: 7 - 3 * i,
    "64 bits": lambda i: 2**62 + 12_345_678_901 * i,
    "text": lambda i: f"p{i}",
    "leading zeros": lambda i: f"{i:06}",
    "spaces": lambda i: f" {i} of many ",
    "quotes": lambda i: f"o'{i}\"s",
    "commas": lambda i: f"a,{i},b",
    "tabs": lambda i: f"a\t{i}",
    "dashes": lambda i: f"--{i}",
    "line breaks": lambda i: f"first\nsecond {i}",
    "unicode": lambda i: f"Žluťoučký-{i}-子",
    "emoji": lambda i: f"🙂{i}👩‍👩‍👧",
    "dates": lambda i: str(datetime.date(1900, 1, 1) + datetime.timedelta(days=i)),
    "uuids": lambda i: str(uuid.UUID(int=i * 0x9E3779B97F4A7C15F39CC0605CEDC835 % 2**128)),
    "decimals": lambda i: f"{i / 4:.2f}",
    "country codes": lambda i: _LETTERS[(i // 26 + 13) % 26] + _LETTERS[i % 26] + "X" * (i // 676),  # NA is Namibia
    "exponents": lambda i: f"{i}e5",
    "markup": lambda i: f"<b>[red]{i}[/]&amp;",
}


# --- columns -----------------------------------------------------------------------------------------------------

Maker = Callable[[np.random.Generator, np.ndarray], Any]
"""Makes a column from a generator and the hidden classes of the nodes (n), which it may depend on."""


def _with_gaps(values: Any, rng: np.random.Generator, share: float = 0.2) -> pd.Series:
    column = pd.Series(values, dtype=object)
    column[rng.random(len(column)) < share] = None
    return column


def _levels(rng: np.random.Generator, y: np.ndarray, names: list[str]) -> np.ndarray:
    return np.array(names, dtype=object)[(y + rng.integers(0, 3, len(y))) % len(names)]


def _days(rng: np.random.Generator, y: np.ndarray) -> pd.DatetimeIndex:
    return pd.Timestamp("2020-02-28") + pd.to_timedelta(rng.integers(0, 3000, len(y)) + 40 * y, unit="D")


def _seconds(rng: np.random.Generator, y: np.ndarray) -> pd.DatetimeIndex:
    return pd.Timestamp("2024-03-01") + pd.to_timedelta(rng.integers(0, 3600, len(y)), unit="s")


def _sentences(rng: np.random.Generator, y: np.ndarray, length: int = 8) -> list[str]:
    words = np.array(["the", "old", "red", "car", 'said "yes"', "and", "left,", "Süden", "it's", "100%", "now;"])
    return [f"{i}: " + " ".join(rng.choice(words, length)) for i in range(len(y))]


COLUMNS: dict[str, Maker] = {
    "number": lambda g, y: g.normal(size=len(y)) + y,
    "number with gaps": lambda g, y: _with_gaps(g.normal(size=len(y)).round(3), g).astype(float),
    "integer": lambda g, y: g.integers(0, 50, len(y)) + y,
    "0 and 1": lambda g, y: g.integers(0, 2, len(y)),
    "1e300": lambda g, y: g.normal(size=len(y)) * 1e300,
    "1e-300": lambda g, y: (g.random(len(y)) + y) * 1e-300,
    "1e18 integers": lambda g, y: 10**18 + g.integers(0, 10**6, len(y)),
    "nanoseconds": lambda g, y: _seconds(g, y).astype("datetime64[ns]").astype("int64"),
    "float32": lambda g, y: g.normal(size=len(y)).astype(np.float32),
    "category": lambda g, y: _levels(g, y, ["red", "green", "blue", "a, b", 'say "x"', "Größe"]),
    "category with gaps": lambda g, y: _with_gaps(_levels(g, y, ["low", "mid", "high"]), g),
    "many categories": lambda g, y: [f"city {i}" for i in g.integers(0, max(2, len(y) // 2), len(y))],
    "codes 007": lambda g, y: [f"{i:03}" for i in g.integers(0, 12, len(y))],
    "versions": lambda g, y: g.choice(["1", "1.0", "1.00", "2.0"], len(y)).astype(object),
    "free text": _sentences,
    "line breaks": lambda g, y: [f"{text}\n\nsecond line, {i % 3}" for i, text in enumerate(_sentences(g, y))],
    "date text": lambda g, y: _days(g, y).strftime("%Y-%m-%d"),
    "date text with zone": lambda g, y: [f"{t.isoformat()}+02:00" for t in _seconds(g, y)],
    "date with gaps": lambda g, y: pd.Series(_days(g, y)).where(g.random(len(y)) > 0.2),
    "timestamp": _seconds,
    "timestamp with zone": lambda g, y: _days(g, y).tz_localize("Europe/Berlin", nonexistent="shift_forward"),
    "date objects": lambda g, y: pd.Series([t.date() for t in _days(g, y)], dtype=object),
    "duration": lambda g, y: pd.to_timedelta(g.integers(0, 10**6, len(y)), unit="s"),
    "decimal": lambda g, y: pd.Series(
        [decimal.Decimal(int(i)) / 100 for i in g.integers(0, 999, len(y))], dtype=object
    ),
    "boolean": lambda g, y: g.random(len(y)) < 0.3 + 0.4 * (y % 2),
    "boolean with gaps": lambda g, y: _with_gaps(g.random(len(y)) < 0.5, g),
    "empty": lambda g, y: pd.Series([None] * len(y), dtype=object),
    "empty float": lambda g, y: np.full(len(y), np.nan),
    "constant": lambda g, y: np.full(len(y), 3.5),
    "constant text": lambda g, y: ["same"] * len(y),
    "almost empty": lambda g, y: pd.Series(np.where(np.arange(len(y)) == 1, 4.0, np.nan)),
    "nullable integer": lambda g, y: _with_gaps(g.integers(0, 9, len(y)), g).astype("Int64"),
    "nullable boolean": lambda g, y: _with_gaps(g.random(len(y)) < 0.5, g).astype("boolean"),
    "nullable text": lambda g, y: _with_gaps(_levels(g, y, ["ja", "nein"]), g).astype("string"),
    "arrow number": lambda g, y: pd.Series(g.normal(size=len(y))).astype(pd.ArrowDtype(pa.float64())),
    "arrow text": lambda g, y: pd.Series(_levels(g, y, ["x", "y", "z"])).astype(pd.ArrowDtype(pa.string())),
    "pandas categories": lambda g, y: pd.Series(pd.Categorical(_levels(g, y, ["s", "m", "l"]), ["s", "m", "l", "xl"])),
    "thousands": lambda g, y: [f"{i:,}" for i in g.integers(0, 10**7, len(y))],
    "percent": lambda g, y: [f"{i / 10:.1f}%" for i in g.integers(0, 1000, len(y))],
    "mostly numbers": lambda g, y: pd.Series(
        [str(i) if i % 9 else "unknown" for i in g.integers(0, 99, len(y))], dtype=object
    ),
}
"""``wide`` is the other kind: three hundred columns of 0 and 1."""
WIDE = 300
ONLY = (("category", "codes 007"), ("free text",), ("boolean",), ("empty",), ("date text",), ())
"""Kinds of columns that are the only ones of many tables."""
NAMES: dict[str, list[str]] = {
    "plain": ["age", "height", "colour", "since", "note", "size_2", "g", "h"],
    "line breaks": ["age\n(years)", "b\r\nc", "note\n", "d\n\ne", "f", "g\nh", "i\nj", "k"],
    "quotes and commas": ['"quoted"', "a,b", "it's", 'x","y', "c;d", "tab\there", "back\\slash", ","],
    "unicode": ["Größe", "年齢", "возраст", "عمر", "é", "ñandú", "ﬁ", "İ"],
    "emoji": ["🙂", "👩‍👩‍👧", "🇩🇪", "a🙂", "🙂🙂", "❤️", "☂", "☃"],
    "spaces": ["a", " a", "a ", "  ", " b c ", "b c", "A", "a\u00a0"],
    "ordinary words": ["weight", "source", "target", "predicted", "probability", "y", "x", "class"],
    "markup": ["[red]a[/red]", "<b>x</b>", "{{ y }}", "%s", "$HOME", "{0}", "[/]", "</script>"],
    "numbers": ["0", "1", "2", "3.5", "-1", "1e5", "007", "None"],
    "index column": ["a", "b", "c", "d", "e", "f", "g", "Unnamed: 0"],
}


# --- labels ------------------------------------------------------------------------------------------------------

LABELS: dict[str, Callable[[int], Any]] = {
    "text": lambda c: f"class {_LETTERS[c % 26]}{c // 26 or ''}",
    "from zero": lambda c: c,
    "from one": lambda c: c + 1,
    "integers with gaps": lambda c: 3 + c * c,
    "large integers": lambda c: 10**12 + 7 * c,
    "signs": lambda c: 2 * c - 1,  # -1, 1, 3, ...: only with --unknown ''
    "minus one is unknown": lambda c: c,
    "truth values": bool,
    "leading zeros": lambda c: f"{c:03}",
    "digits as text": lambda c: str(10 + c),
    "unicode": lambda c: f"Straße {c} 道",
    "quotes": lambda c: f'the "{c}th", or [b]{c}[/b] <i>',
    "NA is a class": lambda c: ("NA", "EU", "AS", "null", "")[c] if c < 4 else f"C{c}",
    "NA is unknown": lambda c: ("EU", "AS", "AF")[c] if c < 3 else f"C{c}",
    "floats": lambda c: c + 1,
    "pandas categories": lambda c: f"level {c}",
    "nullable integers": lambda c: c * 5,
    "versions": lambda c: f"{c}.5.0",
    "dates": lambda c: f"2024-01-{c + 1:02}",
}
INTEGERS = ("from zero", "from one", "integers with gaps", "large integers")
AMOUNTS = ("all", "most", "half", "scarce", "singletons", "skewed")
SPLITS = ("none", "none", "column", "no validation", "several columns", "fold column", "folds")
EDGES = ("directed", "weight", "named weight", "no weight", "more columns", "other names", "headerless")
SHAPES = ("random", "like joins like", "star", "clique", "path", "empty", "isolated", "loops", "repeated", "two-way")


@dataclass(frozen=True)
class ChainGraph:
    """A graph with all that is true of it.

    Attributes:
        kinds: What it is, by respect: ``"ids"``, ``"labels"``, ``"columns"`` (several, joined by ``|``), ...
        nodes, edges: The tables.
        options: Arguments of ``gcnsl.from_tables``.
        folds: Number of folds to draw (``--folds``), 0 for none.
        ids: In the order of the table, integers or text.
        labels: In the same order, integers, text or truth values; ``None`` where the class is not known.
        ends: The numbers of both ends of each row of ``edges``.
        features: The columns of ``nodes`` with features of their own, which ``wide`` ones are not.
        spare: Ids for new nodes.
        x: Features as a sparse matrix (n × d) in place of columns.
    """

    seed: int
    kinds: dict[str, str]
    nodes: pd.DataFrame
    edges: pd.DataFrame
    options: dict[str, Any]
    folds: int
    ids: list[Any]
    labels: list[Any]
    ends: list[tuple[int, int]]
    features: list[str]
    spare: list[Any]
    x: Any = None

    @property
    def directed(self) -> bool:
        """Whether directions are kept."""
        return bool(self.options.get("directed"))

    @property
    def classes(self) -> Counter[Any]:
        """The number of nodes of each class."""
        return Counter(label for label in self.labels if label is not None)

    @cached_property
    def joined(self) -> set[tuple[int, int]]:
        """The undirected edges, each once, loops among them."""
        return {(min(pair), max(pair)) for pair in self.ends}

    @cached_property
    def degrees(self) -> Counter[int]:
        """The number of neighbours of each node that has any, without itself."""
        return Counter(end for pair in self.joined if pair[0] != pair[1] for end in pair)

    @property
    def homophily(self) -> float | None:
        """The share of edges between labelled nodes, without loops, whose ends have the same class."""
        pairs = [(self.labels[a], self.labels[b]) for a, b in self.joined if a != b]
        same = [a == b for a, b in pairs if a is not None and b is not None]
        return sum(same) / len(same) if same else None

    @property
    def isolated(self) -> int:
        """The number of nodes without neighbours."""
        return len(self.ids) - len(self.degrees)


def make_graph(seed: int, **forced: str) -> ChainGraph:
    """Draw a graph. ``forced`` are kinds that are not drawn, such as ``container="csv bom"``."""
    dice, rng = random.Random(seed), np.random.default_rng(seed)
    kinds = _drawn_kinds(dice) | forced
    for respect, value in _made_valid(kinds, dice).items():
        kinds[respect] = value
    n = dice.randint(*SIZES[kinds["size"]])
    count = 2 if kinds["labels"] == "truth values" else min(dice.choice((2, 2, 3, 4, 7, 30)), max(2, n // 12))
    hidden = np.concatenate([np.repeat([0, 1], 6), rng.integers(0, count, n - 12)])
    ends = _ends(kinds["shape"], n, hidden, rng)
    every = [IDS[kinds["ids"]](i) for i in rng.permutation(n + NEW).tolist()]
    labels = _labels(kinds, hidden, rng)
    graph = ChainGraph(seed, kinds, pd.DataFrame(), pd.DataFrame(), {}, 0, every[:n], labels, ends, [], every[n:])
    return _with_tables(graph, hidden, dice, rng)


def _drawn_kinds(dice: random.Random) -> dict[str, str]:
    columns = dice.sample(list(COLUMNS), dice.randint(0, 6)) + ["wide"] * (dice.random() < 0.06)
    if dice.random() < 0.25:
        columns = list(dice.choice(ONLY))
    return {
        "size": dice.choices(list(SIZES), (45, 40, 14, 1))[0],
        "container": dice.choice(TABLES if dice.random() < 0.7 else MEMORY),
        "ids": dice.choice(list(IDS)),
        "columns": "|".join(columns),
        "names": dice.choice(list(NAMES)) if dice.random() < 0.5 else "plain",
        "labels": dice.choice(list(LABELS)),
        "amount": dice.choice(AMOUNTS),
        "split": dice.choice(SPLITS),
        "shape": dice.choice(SHAPES),
        "edges": "|".join(dice.sample(EDGES, dice.choice((0, 0, 1, 1, 2)))),
    }


def _made_valid(kinds: dict[str, str], dice: random.Random) -> dict[str, str]:
    """What must be another kind, because some do not go together: an array of labels can't have ``--unknown ''``."""
    container, columns = kinds["container"], list(filter(None, kinds["columns"].split("|")))
    edges, changed = set(filter(None, kinds["edges"].split("|"))), dict[str, str]()
    if kinds["size"] == "huge":
        container = "csv" if container in ("networkx", "csv large") else container
        columns = [kind for kind in columns if kind != "wide"][:3]
        shape = dice.choice(("random", "like joins like", "star", "path"))
        changed |= {"container": container, "shape": shape, "amount": "half", "split": "none"}
    if container in ("networkx", "scipy", "pyg"):
        sparse = container == "scipy" and ("sparse" in columns or dice.random() < 0.4)
        columns = [kind for kind in columns if kind in ("number", "integer", "0 and 1", "float32", "wide")]
        columns = ["sparse"] if sparse else columns
        known = INTEGERS if container == "pyg" else (*INTEGERS, "text", "unicode", "truth values")
        changed["labels"] = kinds["labels"] if kinds["labels"] in known else dice.choice(known)
        changed |= {"names": "plain", "split": kinds["split"] if kinds["split"] == "column" else "none"}
        edges &= {"directed", "weight"}
    if container == "csv large":
        columns.append("long text")
    if container not in FILES or (changed | kinds)["shape"] == "empty":
        edges -= {"headerless"}
    if "headerless" in edges:
        edges &= {"headerless", "directed"}
    if "named weight" in edges:
        edges -= {"weight", "no weight"}
    if "no weight" in edges:
        edges |= {"weight"}
    return changed | {"columns": "|".join(columns), "edges": "|".join(sorted(edges))}


def _ends(shape: str, n: int, hidden: np.ndarray, rng: np.random.Generator) -> list[tuple[int, int]]:
    """The edges of a shape, in random order and directions."""
    if shape == "empty":
        return []
    if shape == "star":
        pairs = np.stack([np.zeros(n - 1, dtype=int), np.arange(1, n)])
    elif shape == "clique":
        pairs = np.array(np.triu_indices(min(n, 40), 1))
    elif shape == "path":
        pairs = np.stack([np.arange(n - 1), np.arange(1, n)])
    else:
        pairs = rng.integers(0, n // 2 if shape == "isolated" else n, (2, 3 * n))
        if shape == "like joins like":
            pairs = pairs[:, (hidden[pairs[0]] == hidden[pairs[1]]) | (rng.random(3 * n) < 0.2)]
        if shape == "loops":
            pairs = np.concatenate([pairs, np.tile(np.arange(0, n, 2), (2, 1))], axis=1)
        else:
            pairs = pairs[:, pairs[0] != pairs[1]]
    pairs = np.where(rng.random(pairs.shape[1]) < 0.5, pairs, pairs[::-1])
    if shape == "repeated":
        pairs = np.concatenate([pairs, pairs[:, ::2], pairs[::-1, ::3]], axis=1)
    elif shape == "two-way":
        pairs = np.concatenate([pairs, pairs[::-1]], axis=1)
    return [(a, b) for a, b in pairs[:, rng.permutation(pairs.shape[1])].T.tolist()]


def _labels(kinds: dict[str, str], hidden: np.ndarray, rng: np.random.Generator) -> list[Any]:
    """The labels; the first two classes have at least six labelled nodes each."""
    n, amount = len(hidden), kinds["amount"]
    classes = hidden.copy()
    if amount == "skewed":
        classes[(classes > 0) & (rng.random(n) < 0.8)] = 0
    if amount == "singletons":
        classes[classes > 1] %= 2
        odd = rng.permutation(np.unique(hidden[hidden > 1]))
        classes[rng.permutation(n)[: len(odd)]] = odd
    share = {"all": 0.0, "most": 0.2, "half": 0.5, "scarce": 0.95}.get(amount, 0.1)
    unknown = rng.random(n) < share
    for c in (0, 1):  # a graph with fewer labels can't be split into three parts
        for node in rng.permutation(np.flatnonzero(hidden == c))[:6]:
            classes[node], unknown[node] = c, False
    name = LABELS[kinds["labels"]]
    return [None if hide else name(c) for c, hide in zip(classes.tolist(), unknown.tolist(), strict=True)]


def _label_column(kind: str, labels: list[Any], container: str) -> Any:
    """The labels as a column: integers beside gaps are floats, as pandas has them, unless they are nullable."""
    gap = {"minus one is unknown": -1, "NA is unknown": "NA"}.get(kind)
    values = [gap if label is None else label for label in labels]
    named = {"nullable integers": "Int64", "pandas categories": "category", "floats": float}.get(kind)
    if named is not None:
        return pd.Series(values, dtype=named)
    types = {type(value) for value in values}
    if types == {int, type(None)}:
        return pd.Series(values, dtype=float if container in ("pandas", "parquet", "pq") else "Int64")
    return pd.Series(values, dtype="int64" if types == {int} else bool if types == {bool} else object)


def _with_tables(graph: ChainGraph, hidden: np.ndarray, dice: random.Random, rng: np.random.Generator) -> ChainGraph:
    kinds, n, options = graph.kinds, len(graph.ids), dict[str, Any]()
    id_name, label_name = dice.choice((("id", "label"), ("id", "label"), ("key", "outcome")))
    columns: dict[str, Any] = {id_name: _id_column(graph.ids, graph.ids)}
    if id_name != "id":
        options |= {"id": id_name, "label": label_name}
    names = [name for name in NAMES[kinds["names"]] if name not in (id_name, label_name)]
    features = []
    for kind in filter(None, kinds["columns"].split("|")):
        if kind == "sparse":
            graph = replace(graph, x=_sparse_features(n, rng))
            continue
        if kind == "wide":
            columns |= {f"bit{i}": rng.integers(0, 2, n) for i in range(WIDE)}
            continue
        if kind == "long text":  # a file over 1 MiB, with line breaks in its cells
            columns["long"] = ["x" * (2_300_000 // n) + f"\n{i},\n" for i in range(n)]
            continue
        if names:
            name = names.pop(dice.randrange(len(names)))
            columns[name] = COLUMNS[kind](rng, hidden)
            features.append(name)
            if kind == "integer" and dice.random() < 0.3:
                options["categorical"] = [name]
            elif dice.random() < 0.1:
                options["drop"] = [name]
    if kinds["names"] == "index column":  # as pandas writes it, by default
        columns = {"": np.arange(n), **columns}
    columns[label_name] = _label_column(kinds["labels"], graph.labels, kinds["container"])
    if kinds["labels"] in ("signs", "NA is a class"):
        options["unknown"] = []
    columns |= _split_columns(kinds["split"], graph.labels, options, dice)
    nodes = pd.DataFrame({name: pd.Series(column).reset_index(drop=True) for name, column in columns.items()})
    folds = 3 if kinds["split"] == "folds" else 0
    graph = replace(graph, nodes=nodes, options=options, folds=folds, features=features)
    return replace(graph, edges=_edge_table(graph, dice, rng))


def _sparse_features(n: int, rng: np.random.Generator) -> sp.csr_array:
    """A matrix whose rows list their columns in any order and, in half of all graphs, twice, as SciPy allows it."""
    columns = np.concatenate([rng.permutation(60)[:4] for _ in range(n)]).astype(np.int32)
    columns[:: rng.choice((4 * n, 4))] = columns[1]
    values = rng.integers(1, 9, 4 * n).astype(np.float32)
    return sp.csr_array((values, columns, np.arange(0, 4 * n + 1, 4, dtype=np.int32)), shape=(n, 60))


def _split_columns(kind: str, labels: list[Any], options: dict[str, Any], dice: random.Random) -> dict[str, Any]:
    """Columns with parts of a split; each part has nodes of the first two classes, and single nodes are trained on."""
    if kind in ("none", "folds"):
        return {}
    by_class: dict[Any, list[int]] = {}
    for node, label in enumerate(labels):
        if label is not None:
            by_class.setdefault(label, []).append(node)

    def dealt(parts: tuple[Any, ...]) -> pd.Series:
        column = pd.Series([None] * len(labels), dtype=object)
        for nodes in by_class.values():
            for place, node in enumerate(dice.sample(nodes, len(nodes))):
                column[node] = parts[place % len(parts)]
        return column

    parts = ("train", "test", "train") if kind == "no validation" else ("train", "val", "test", "train", None)
    if kind == "fold column":
        options["fold"] = "part"
        return {"part": dealt((0, 1, 2)).astype("Int64")}
    if kind == "several columns":
        options["split"] = ["first", "second"]
        return {"first": dealt(parts), "second": dealt(parts)}
    return {"split": dealt(parts)}


def _id_column(values: list[Any], ids: list[Any]) -> pd.Series:
    return pd.Series(values, dtype=object if isinstance(ids[0], str) else "int64")


def _edge_table(graph: ChainGraph, dice: random.Random, rng: np.random.Generator) -> pd.DataFrame:
    chosen, options, m = graph.kinds["edges"].split("|"), graph.options, len(graph.ends)
    names = dice.choice((("from", "to"), ("a", "b"), ("u\nv", 'w"')))
    names = names if "other names" in chosen else ("source", "target")
    sides = ([graph.ids[pair[side]] for pair in graph.ends] for side in (0, 1))
    table = pd.DataFrame({name: _id_column(side, graph.ids) for name, side in zip(names, sides, strict=True)})
    if "weight" in chosen:
        table["weight"] = rng.gamma(2.0, 1.0, m) + 0.01
    if "named weight" in chosen:
        table["amount, €"] = rng.integers(1, 10**6, m)
        options["weight"] = "amount, €"
    if "no weight" in chosen:
        options["weight"] = False
    if "more columns" in chosen:
        table["when"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 10**6, m), unit="s")
        table["kind"] = pd.Series(rng.choice(["call", "text, long", None], m), dtype=object)
    if "directed" in chosen:
        options["directed"] = True
    return table


def grow(graph: ChainGraph, *, more: bool = True) -> ChainGraph:
    """The graph some time later: rows in another order and, with ``more``, new nodes.

    One of these is isolated, one has a category that was never seen, and two are joined to old ones and to each other.
    """
    rng = np.random.default_rng(graph.seed + 1)
    n, new = len(graph.ids), NEW if more else 0
    like = rng.integers(0, n, new)
    nodes = pd.concat([graph.nodes, graph.nodes.iloc[like]], ignore_index=True)
    id_name = graph.options.get("id", "id")
    ids, labels = graph.ids + graph.spare[:new], graph.labels + [graph.labels[i] for i in like]
    nodes[id_name] = pd.Series(ids, dtype=nodes[id_name].dtype)
    if more:
        for name in graph.features:
            last = nodes[name].iloc[-1]
            if nodes[name].dtype in (object, "str") and isinstance(last, str) and last.isalpha():
                nodes.loc[len(nodes) - 1, name] = "never seen"
                break
    order = rng.permutation(n + new)
    place = {old: i for i, old in enumerate(order.tolist())}
    targets = rng.integers(0, n, 6).tolist() if more else []
    extra = [(n, t) for t in targets[:3]] + [(t, n + 1) for t in targets[3:]] + [(n, n + 1)] * more
    ends = graph.ends + (extra if graph.edges.shape[0] else [])
    edges = graph.edges
    if len(ends) > len(graph.ends):
        edges = pd.concat([edges, edges.iloc[rng.integers(0, len(edges), len(extra))]], ignore_index=True)
        for side, name in enumerate(edges.columns[:2]):
            edges[name] = pd.Series([ids[pair[side]] for pair in ends], dtype=graph.edges[name].dtype)
    x = None if graph.x is None else sp.vstack([graph.x, graph.x[like]]).tocsr()[order]
    return replace(
        graph,
        x=x,
        nodes=nodes.iloc[order].reset_index(drop=True),
        edges=edges,
        ids=[ids[i] for i in order],
        labels=[labels[i] for i in order],
        ends=[(place[a], place[b]) for a, b in ends],
    )
