"""Damage to what the program has written: every kind at random places, and the number of cases to try."""

import copy
import os
from random import Random
from typing import Any

CASES = int(os.environ.get("GCNSL_HOSTILE_CASES", "3"))
"""Long forms of the tests have hundreds."""

ODD_VALUES = (
    None, True, -1, 0, 7, 10**30, 1.5, -1e300, float("nan"), float("inf"),
    "", "x", "NaN", "<!--<script>", "$x_$", "\x00", "\ud800", "9" * 5000,
    [], {}, [1], [None], ["x"], {"a": 1}, {"a": {"b": []}}, [[[]]],
)  # fmt: skip


def places(plain: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths to all values within nested lists and dicts."""
    inner = plain.items() if isinstance(plain, dict) else enumerate(plain) if isinstance(plain, list) else ()
    return [path] * bool(path) + [place for key, value in inner for place in places(value, (*path, key))]


def damaged(plain: Any, random: Random) -> Any:
    """A copy in which one value is another one, or missing, or there is one too many."""
    changed = copy.deepcopy(plain)
    *path, key = random.choice(places(plain))
    inside = changed
    for step in path:
        inside = inside[step]
    kind = random.random()
    if kind < 0.15:
        del inside[key]
    elif kind < 0.25 and isinstance(inside, dict):
        inside["one too many"] = random.choice(ODD_VALUES)
    else:
        inside[key] = random.choice(ODD_VALUES)
    return changed


def damaged_bytes(content: bytes, random: Random) -> bytes:
    """A copy with a few other bytes, or without its end."""
    if random.random() < 0.2:
        return content[: random.randrange(len(content))]
    changed = bytearray(content)
    for _ in range(random.choice((1, 1, 5, 100))):
        changed[random.randrange(len(content))] = random.randrange(256)
    return bytes(changed)
