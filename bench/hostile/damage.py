"""Ways to damage bytes and JSON documents."""

from __future__ import annotations

import copy
import random
from typing import Any

ODD_VALUES: tuple[Any, ...] = (
    None,
    True,
    -1,
    1.5,
    10**40,
    1e308,
    "",
    "x",
    "../../x",
    "<!--<script>",
    [],
    {},
    [1],
    {"a": 1},
)


def damaged_bytes(content: bytes, rng: random.Random) -> bytes:
    """Some bits flipped, a piece cut out, doubled or zeroed, or the end missing."""
    spoilt = bytearray(content)
    what, place = rng.randrange(5), rng.randrange(len(content))
    length = rng.randint(1, max(1, len(content) // 8))
    if what == 0:
        for _ in range(rng.randint(1, 8)):
            spoilt[rng.randrange(len(spoilt))] ^= 1 << rng.randrange(8)
    elif what == 1:
        del spoilt[place : place + length]
    elif what == 2:
        spoilt[place:place] = spoilt[place : place + length]
    elif what == 3:
        spoilt[place : place + length] = bytes(len(spoilt[place : place + length]))
    else:
        del spoilt[place:]
    return bytes(spoilt)


def damaged_document(document: Any, rng: random.Random) -> Any:
    """A copy of a JSON document in which one entry, at any depth, is missing or is something else."""
    document = copy.deepcopy(document)
    parent, key = rng.choice(list(_entries(document)))
    if isinstance(parent, dict) and rng.random() < 0.2:
        del parent[key]
    elif isinstance(parent, dict) and rng.random() < 0.1:
        parent["unheard of"] = parent.pop(key)
    else:
        parent[key] = rng.choice(ODD_VALUES)
    return document


def _entries(value: Any) -> Any:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield value, key
        yield from _entries(inner)
