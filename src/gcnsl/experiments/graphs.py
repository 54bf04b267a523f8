"""Which graphs there are for experiments, and which kinds of split each has."""

from gcnsl.datasets import NAMES, is_known
from gcnsl.datasets.benchmarks import BENCHMARKS
from gcnsl.errors import InputError


def check_graph(name: str, split: str | None = None) -> None:
    """Refuse a graph that there is not, or a split that it has not, before any work is done."""
    if not is_known(name):
        raise InputError(f"dataset({name!r}) must be one of {', '.join(NAMES)}, or synthetic-hH with H from 0 to 1")
    if split not in (None, *splits_of(name)):
        raise InputError(f"split({split!r}) does not exist for {name}: use {' or '.join(splits_of(name))}")


def splits_of(name: str) -> tuple[str, ...]:
    """The kinds of split that a graph has."""
    return ("random", "geom-gcn") if name in BENCHMARKS else ("random",)
