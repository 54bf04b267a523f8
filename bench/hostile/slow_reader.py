"""What a table of nodes and a table of edges say, read slowly with Python's csv module and nothing of the package.

The rules are those of the documentation of ``gcnsl.from_tables``. Where a table must be refused, the reader says why.
"""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass

MISSING = {"", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "N/A", "NA"}
MISSING |= {"NULL", "NaN", "n/a", "nan", "null"}
NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d*)?")
NUL = "\u2400"
PLAIN = re.compile(r"-?\d{1,9}(\.\d{1,9})?")


class Unreadable(Exception):  # noqa: N818 - it is no error of this program
    """The tables must be refused."""


class Undecided(Exception):  # noqa: N818 - it is no error of this program
    """The package may guess: the encoding, say, or which column holds the ids."""


@dataclass(frozen=True)
class Graph:
    """What must be found in the tables.

    Attributes:
        ids: The ids, in order.
        classes: The rows of each class, as sets of row numbers; ``None`` if there is no label column.
        edges: Pairs of row numbers, the smaller one first, without loops.
        features: The features, where all of them are plain complete numbers; else ``None``, not to be compared.
    """

    ids: list[str]
    classes: set[frozenset[int]] | None
    edges: set[tuple[int, int]]
    features: list[list[float]] | None


def read_slowly(nodes: bytes, edges: bytes) -> Graph:
    """The graph, or why there is none."""
    header, rows = _rows(nodes)
    if not rows:
        raise Unreadable("there is no node")
    if "id" not in header:
        raise Undecided("no column is called id")
    id_place = header.index("id")
    rows = _without_repeated(rows, id_place)
    ids = [row[id_place] for row in rows]
    if "" in ids:
        raise Unreadable("an id is missing")
    number = {name: place for place, name in enumerate(ids)}
    if len(number) < len(ids):
        raise Unreadable("two nodes have the same id")
    label_place = header.index("label") if "label" in header else None
    classes = None if label_place is None else _classes([row[label_place] for row in rows])
    others = [place for place in range(len(header)) if place not in (id_place, label_place)]
    texts = [[row[place] for place in others] for row in rows]
    plain = all(PLAIN.fullmatch(text) for row in texts for text in row)
    return Graph(ids, classes, _edges(edges, number), [[float(t) for t in row] for row in texts] if plain else None)


def _rows(content: bytes) -> tuple[list[str], list[list[str]]]:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Undecided("it is not UTF-8") from error
    text = text.replace("\0", NUL)  # older versions of csv refuse it
    header, *rows = [row for row in csv.reader(io.StringIO(text, newline="")) if row] or [[]]
    if len(header) == 1 and re.search(r"[;\t| ]", header[0]):
        raise Undecided("other characters may separate its cells")
    if not header or len(set(header)) < len(header):
        raise Unreadable("it has no columns, or two of one name")
    if any(len(row) != len(header) for row in rows):
        raise Unreadable("a row has too few or too many cells")
    return header, rows


def _without_repeated(rows: list[list[str]], id_place: int) -> list[list[str]]:
    """The rows, each once, if all that have the same id are the same."""
    once = [row for place, row in enumerate(rows) if row not in rows[:place]]
    return once if len({row[id_place] for row in once}) == len(once) else rows


def _classes(labels: list[str]) -> set[frozenset[int]]:
    known = {row: label for row, label in enumerate(labels) if label not in MISSING}
    if len(set(known.values()) - {"-1"}) != 1:  # otherwise -1 is the other class
        known = {row: label for row, label in known.items() if label != "-1"}
    texts = set(known.values())
    are_numbers = all(NUMBER.fullmatch(text) for text in texts)
    if any("." in text for text in texts):  # floats, which hold only some of the large integers
        are_numbers &= all(NUMBER.fullmatch(text) and abs(float(text)) < 2**53 for text in texts)
    values = {text: _number(text) if are_numbers else text for text in texts}  # 1 and 1.0 are one class
    rows: dict[object, set[int]] = {}
    for row, label in known.items():
        rows.setdefault(values[label], set()).add(row)
    if len(rows) == 1:
        raise Unreadable("there is only one class")
    return {frozenset(members) for members in rows.values()}


def _number(text: str) -> float | int:
    return float(text) if "." in text else int(text)


def _edges(content: bytes, number: dict[str, int]) -> set[tuple[int, int]]:
    header, rows = _rows(content)
    if len(header) < 2:
        raise Unreadable("there is no column for the other end")
    names = ("source", "target")
    places = [header.index(name) for name in names] if {*names} <= {*header} else [0, 1]
    found, lost = set(), 0
    for row in rows:
        ends = [row[place] for place in places]
        if "" in ends:
            raise Unreadable("an end is missing")
        if any(end not in number for end in ends):
            lost += 1
            continue
        first, second = sorted(number[end] for end in ends)
        if first != second:
            found.add((first, second))
    if 2 * lost > len(rows):
        raise Unreadable("most edges lead to no node")
    return found
