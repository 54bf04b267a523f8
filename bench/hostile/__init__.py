"""Hostile input for all of the package: it works, or is refused in one line that says what to change."""

from __future__ import annotations

import importlib
import random
from itertools import islice

from bench.hostile.cases import Case


def chosen_cases(what: str, count: int, rng: random.Random) -> list[Case]:
    """So many cases of one kind: drawn without end, or a sample of all there are."""
    module = importlib.import_module(f"bench.hostile.{what}")
    if module.ENDLESS:
        return list(islice(module.cases(rng), count))
    found = list(module.cases(rng))
    return rng.sample(found, min(count, len(found)))
