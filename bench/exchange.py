"""What several processes exchange in an epoch, and the memory of each: a model of what one machine can't measure.

    python bench/exchange.py [--method gcn-sl-plus]

A matrix with a row for each node and w columns that is *gathered* brings a process (N − 1) / N · n · w numbers of the N
processes. In the backward pass, the derivative takes as many the other way. An epoch is a training step and, once in
five epochs, an evaluation pass. ``tests/bench/test_exchange.py`` compares the model with the bytes of a real run.
"""

from __future__ import annotations

import argparse
from typing import NamedTuple

from gcnsl.methods import find_method
from gcnsl.nn import GCNConfig, GCNSLConfig, GCNSLPlusConfig, ModelConfig
from gcnsl.sharding.node_rows import LEAST_COLUMNS
from gcnsl.training.settings import LARGE_INTERVAL

NODES, PROCESSES = (10**6, 10**7, 10**8, 10**9), (1, 2, 4, 8, 16, 32, 64)
CLASSES, SHARED_WEIGHTS, FLOAT, PLACE = 10, 10_000, 4, 8
OWN_BYTES = {"gcn-sl-plus": 6000, "gcn-sl-cc": 4800}
"""Bytes that another node takes in a single process, with 64 features and 10 edges: measured by ``bench/ranks.py`` from
40,000 to 200,000 nodes."""


class Gathered(NamedTuple):
    """What is gathered of each node: columns in a training step and in an evaluation pass, and places in groups."""

    training: int
    evaluation: int
    places: int
    """In one pass."""
    directions: int
    """Columns of z, which every process has of all nodes while it works on A*."""


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
    return Gathered(training, every_pass, heads if in_groups else 0, q)


def bytes_per_epoch(
    found: Gathered, classes: int, shared_weights: int, n: int, size: int, *, interval: int = LARGE_INTERVAL
) -> float:
    """Bytes that each of ``size`` processes receives in an epoch, of which one in ``interval`` is evaluated.

    ``shared_weights`` is a number of weights.
    """
    others = (size - 1) * -(-n // size)
    # The logits are gathered in both passes, and have no backward pass.
    columns = 2 * found.training + classes + (found.evaluation + classes) / interval
    from_first = PLACE * n * found.places * (1 + 1 / interval) if size > 1 else 0
    return FLOAT * (others * columns + 2 * shared_weights * (size - 1) / size) + from_first


def memory(found: Gathered, classes: int, own_bytes: int, n: int, size: int) -> float:
    """Bytes of each process in training: its share, and what it has of all nodes at a time.

    That is z, some gathered columns, their derivatives and the sum of these, the logits likewise, labels and masks, and
    the places of the nodes in groups. The first process also has the graph.
    """
    columns = found.directions + 3 * LEAST_COLUMNS + 3 * classes
    return n * (own_bytes / size + FLOAT * columns + 4 * PLACE)


def to_markdown(method: str) -> str:
    """Gigabytes received in an epoch / gigabytes of memory, as a table in Markdown."""
    found = gathered(find_method(method).config, CLASSES, in_groups=True)
    lines = [f"| processes | {' | '.join(f'{n:,} nodes' for n in NODES)} |", "| ---: |" + " ---: |" * len(NODES)]
    for size in PROCESSES:
        received = (gigabytes(bytes_per_epoch(found, CLASSES, SHARED_WEIGHTS, n, size)) for n in NODES)
        used = (gigabytes(memory(found, CLASSES, OWN_BYTES[method], n, size)) for n in NODES)
        cells = [f"{a} / {b}" for a, b in zip(received, used, strict=True)]
        lines.append(f"| {size} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def gigabytes(number: float) -> str:
    """A number of bytes in gigabytes, to two digits or more."""
    return f"{number / 1e9:.1f}" if 0 < number < 9.95e9 else f"{number / 1e9:,.0f}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--method", default="gcn-sl-plus", choices=list(OWN_BYTES))
    print(to_markdown(parser.parse_args().method))


if __name__ == "__main__":
    main()
