"""Fuzzed tables of nodes and edges through ``from_tables``, against the independent reader.

A table that the reader refuses must be refused; of one that is accepted, ids, classes, edges and plain features must be
the reader's. The package may refuse more, for example features that no reader can use.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from bench.hostile.cases import Case
from bench.hostile.slow_reader import NUL, Undecided, Unreadable, read_slowly

import gcnsl

ODD = ["", "NA", "null", "nan", "-1", "007", "7", "7.0", "1e19", "9007199254740993", "9007199254740992", "1e999", "-0"]
ODD += ["inf", "$x_$", "=1+1", "é", "名", " a", "a ", "a'b", "x" * 400, "True", "2020-01-01", "0x10", "1_0", "٣"]
NAMES = ["a", "b", "c", "1", "2", "3", "0.5", "10", "1.0"]

ENDLESS = True
"""Whether cases are drawn without end; otherwise ``cases`` lists all there are."""


def cases(rng: random.Random) -> Iterator[Case]:
    """Tables without end; each has a seed of its own."""
    while True:
        seed = rng.randrange(2**31)
        nodes, edges, how = make_tables(random.Random(seed))
        yield Case(f"tables, {how}", f"seed {seed}", partial(read, nodes, edges), partial(fault, nodes, edges))


def read(nodes: bytes, edges: bytes) -> Any:
    """The graph as the package reads it."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "nodes.csv").write_bytes(nodes)
        Path(folder, "edges.csv").write_bytes(edges)
        return gcnsl.from_tables(Path(folder, "nodes.csv"), Path(folder, "edges.csv"))


def fault(nodes: bytes, edges: bytes, data: Any) -> str:
    """What is wrong with the graph that the package has read."""
    try:
        wanted = read_slowly(nodes, edges)
    except (Unreadable, Undecided) as why:
        return f"accepted, though {why}" if isinstance(why, Unreadable) else ""
    if [str(name).replace("\0", NUL) for name in data.node_ids] != wanted.ids:
        return f"the ids are {data.node_ids[:5]}, not {wanted.ids[:5]}"
    if {(u, v) for u, v in data.edge_index.T.tolist() if u < v} != wanted.edges:
        return "the edges differ"
    if wanted.classes is not None:
        numbers = data.y.tolist()
        classes = {frozenset(i for i, y in enumerate(numbers) if y == c) for c in set(numbers) - {-1}}
        if classes != wanted.classes:
            shown = (sorted(map(sorted, found)) for found in (classes, wanted.classes))
            return "the classes are {}, not {}".format(*shown)
    if wanted.features is not None and data.get("columns") is None:
        given = data.x.to_dense().double().tolist()
        close = all(
            abs(a - b) <= 1e-6 * max(1.0, abs(b))
            for row, other in zip(given, wanted.features, strict=True)
            for a, b in zip(row, other, strict=True)
        )
        return "" if close else "the features differ"
    return ""


def make_tables(rng: random.Random) -> tuple[bytes, bytes, str]:
    """The two files, and how they were made hostile."""
    n, columns = rng.randint(2, 12), rng.randint(0, 3)
    ids = [str(i) for i in range(n)] if rng.random() < 0.5 else [f"n{i}" for i in range(n)]
    header = ["id", "label", *(f"f{i}" for i in range(columns))]
    rows = [[name, rng.choice(NAMES[:6]), *(f"{rng.uniform(-9, 9):.3f}" for _ in range(columns))] for name in ids]
    links = [[rng.choice(ids), rng.choice(ids)] for _ in range(rng.randint(0, 20))]
    how = rng.choice(["labels", "ids", "cells", "edges", "shape", "bytes", "none"])
    if how == "labels":
        for row in rng.sample(rows, rng.randint(1, n)):
            row[1] = rng.choice(ODD + NAMES)
    elif how == "ids":
        row = rng.choice(rows)
        row[0] = rng.choice([*ODD, rng.choice(ids)])
        links = [[rng.choice([*ids, row[0]]) for _ in range(2)] for _ in links]
    elif how == "cells":
        for _ in range(rng.randint(1, 4)):
            row = rng.choice(rows)
            row[rng.randrange(len(row))] = rng.choice(ODD)
    elif how == "edges" and links:
        rng.choice(links)[rng.randrange(2)] = rng.choice([*ODD, "nobody"])
    elif how == "shape":
        _spoil_shape(rng, header, rows, links)
    nodes, edges = _csv(rng, [header, *rows]), _csv(rng, [["source", "target"], *links])
    if how == "bytes":
        nodes, edges = (nodes, _spoil_bytes(rng, edges)) if rng.random() < 0.3 else (_spoil_bytes(rng, nodes), edges)
    return nodes, edges, how


def _spoil_shape(rng: random.Random, header: list[str], rows: list[list[str]], links: list[list[str]]) -> None:
    what = rng.randrange(7)
    if what == 0:
        rng.choice(rows).append("extra")
    elif what == 1:
        rng.choice(rows).pop()
    elif what == 2:
        header[-1] = header[0]
    elif what == 3:
        rows.append(list(rng.choice(rows)))
    elif what == 4:
        rows.clear()
    elif what == 5:
        links[:] = [row[:1] for row in links]
    else:
        header[0], header[1] = rng.choice(["name", "ID", "", "label2"]), rng.choice(["class", "label", "Label"])


def _csv(rng: random.Random, rows: list[list[str]]) -> bytes:
    end = rng.choice(["\n", "\n", "\r\n"])
    quoted = rng.random() < 0.2
    cells = ([f'"{cell}"' if quoted else cell for cell in row] for row in rows)
    text = end.join(",".join(row) for row in cells) + rng.choice([end, end, "", end + end])
    return rng.choice([b"", b"", b"", "\ufeff".encode()]) + text.encode()


def _spoil_bytes(rng: random.Random, content: bytes) -> bytes:
    spoilt = bytearray(content)
    for _ in range(rng.randint(1, 5)):
        place = rng.randrange(len(spoilt))
        what = rng.randrange(3)
        if what == 0:
            spoilt[place] = rng.randrange(256)
        elif what == 1:
            spoilt[place:place] = rng.choice([b",", b"\n", b'"', b"\0", b"\r", b"\xff", b"\t", b";"])
        else:
            del spoilt[place:]
            spoilt += b"x"
    return bytes(spoilt)
