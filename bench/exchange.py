"""What several processes exchange in an epoch, and the memory of each: a model of what one machine can't measure.

    python bench/exchange.py [--method gcn-sl-plus]

A matrix with a row for each node and w columns that is *gathered* brings a process (N − 1) / N · n · w numbers of the N
processes. In the backward pass, the derivative takes as many the other way. An epoch is a training step and an
evaluation pass. ``tests/bench/test_exchange.py`` compares the model with the bytes of a real run.
"""

from __future__ import annotations

import argparse
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from gcnsl.methods import find_method
from gcnsl.nn import GCNConfig, GCNSLConfig, GCNSLPlusConfig, ModelConfig

NODES, PROCESSES = (10**6, 10**7, 10**8, 10**9), (1, 2, 4, 8, 16, 32, 64)
CLASSES, FLOAT, PLACE = 10, 4, 8
OWN_BYTES = {"gcn-sl-plus": 6000, "gcn-sl-cc": 4000}
"""Bytes per node of a process that has all nodes, with 64 features and 10 edges per node; from ``bench/scale.py``."""


class Gathered(NamedTuple):
    """What is gathered of each node: columns in a training step and in an evaluation pass, and places in groups."""

    training: int
    evaluation: int
    places: int
    largest: int
    """The most columns that are in memory at a time."""


def gathered(config: ModelConfig, classes: int, *, in_groups: bool) -> Gathered:
    """What a method gathers; ``in_groups`` says whether A* is estimated, as in a large graph on a CPU."""
    if isinstance(config, GCNSLPlusConfig):
        sides, p, q = 2 if config.direction == "both" else 1, config.hidden_channels, config.similarity_channels
        heads = config.neighbours_heads + config.features_heads
        directions = heads * q + config.neighbours_heads * sides * q  # z, and the Q of the links
        links = sides * p if config.structure_branch else 0
        every_pass = sides * config.rounds * p + directions + heads * (1 + in_groups) * p + links
        training = every_pass + (directions if config.contrast else 0)
    elif isinstance(config, GCNSLConfig):
        p, q = config.hidden_channels, config.similarity_channels
        p *= 2 if config.merge == "concat" and config.spectral_channels else 1
        heads = int(config.use_reconnected)
        training = every_pass = config.use_adjacency * config.rounds * p + heads * (q + (1 + in_groups) * p)
    else:
        p, q, heads = (config.hidden_channels if isinstance(config, GCNConfig) else 0), 0, 0
        training = every_pass = (config.num_layers - 1) * p + classes if isinstance(config, GCNConfig) else 0
    return Gathered(training, every_pass, 2 * heads if in_groups else 0, q + (1 + in_groups) * p)


def bytes_per_epoch(found: Gathered, classes: int, shared_weights: int, n: int, size: int) -> float:
    """Bytes that each of ``size`` processes receives in an epoch; ``shared_weights`` is a number of weights."""
    others = (size - 1) * -(-n // size)
    columns = 2 * found.training + found.evaluation + 2 * classes  # logits have no backward pass, but are in both
    from_first = PLACE * n * found.places if size > 1 else 0
    return FLOAT * (others * columns + 2 * shared_weights * (size - 1) / size) + from_first


def memory(found: Gathered, own_bytes: int, n: int, size: int) -> float:
    """Bytes of each process in training: its share, and what is gathered of all nodes at a time."""
    return n * (own_bytes / size + FLOAT * found.largest + 2 * PLACE)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--method", default="gcn-sl-plus", choices=list(OWN_BYTES))
    name = parser.parse_args().method
    found = gathered(find_method(name).config, CLASSES, in_groups=True)
    table = Table("processes", *(f"{n:,} nodes" for n in NODES), title=f"{name}: GB received per epoch / GB of memory")
    for size in PROCESSES:
        cells = ((bytes_per_epoch(found, CLASSES, 10**4, n, size), memory(found, OWN_BYTES[name], n, size)) for n in NODES)
        table.add_row(str(size), *(f"{received / 1e9:,.1f} / {used / 1e9:,.1f}" for received, used in cells))
    Console().print(table)


if __name__ == "__main__":
    main()
