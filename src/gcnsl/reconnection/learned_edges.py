"""The learned graph itself: its edges and their weights, and the ε at which it has a given number of them."""

import os
from typing import Any

import torch
from torch import Tensor

from gcnsl.checks import check_flag, check_number
from gcnsl.errors import ArgumentError
from gcnsl.execution import torch_threads_for
from gcnsl.reconnection.operator import choose_backend, module_of
from gcnsl.reconnection.problem import (
    UNIT_TOLERANCE,
    Problem,
    check_arguments,
    check_values,
    computed_in,
    threshold_of,
)

CHECKED_ROWS = 64
"""The rows from which the number of edges is estimated."""
SAMPLED_ROWS, SAMPLED_KEYS = 128, 1 << 14
"""The most rows and keys from which an ε is estimated."""
LEAST_EPSILON = 1e-3
"""ε if not even all positive similarities give the wanted degree."""


def reconnected_edges(
    z: Tensor, epsilon: float, *, keys: Tensor | None = None, loops: bool = True, normalize: bool = False
) -> tuple[Tensor, Tensor]:
    """List the edges of A*: all pairs with z_i·z_j ≥ ε.

    Args:
        z: Rows of norm 1, or zero (n × q).
        epsilon: The smallest similarity that is kept, in [0, 1]; see `reconnect`.
        keys: Compare the rows of z with these rows (m × q) instead of with each other.
        loops: Whether to list the pairs (i, i); with ``keys`` all pairs are listed.
        normalize: Divide each weight by the sum of the weights in its row, which gives Â* instead of A*.

    Returns:
        ``edge_index`` (2 × E, int64), with i in the first row and j in the second, sorted by i, then j; and ``weight``
        (E), the similarities z_i·z_j, differentiable in z and ``keys``. Memory is that of the result, plus E·q values
        for the weights.

    Raises:
        InputError: if an argument is not as described, or the edges would not fit into memory.
    """
    check_flag("loops", loops)
    check_flag("normalize", normalize)
    check_arguments(z, z if keys is None else keys, keys)
    rows = z.to(computed_in(z.dtype))
    key_rows = rows if keys is None else keys.to(rows.dtype)
    how: dict[str, Any] = {"tolerance": UNIT_TOLERANCE[z.dtype], "loops": loops}
    problem = Problem.of(rows, None if keys is None else key_rows, key_rows, threshold_of(epsilon, z.dtype), **how)
    check_values(problem)
    with torch_threads_for(len(rows) * key_rows.numel()):
        _check_size(problem, epsilon)
        edge_index: Tensor = module_of(choose_backend(z, problem.keys, z.shape[1])).find(problem)
    source, target = edge_index
    weight = (rows[source] * key_rows[target]).sum(dim=1)
    if normalize:
        weight = weight / weight.new_zeros(len(z)).index_add(0, source, weight)[source]
    return edge_index, weight.to(z.dtype)


def _check_size(problem: Problem, epsilon: float) -> None:
    """Estimate the number of edges from a few rows, before all of them are looked for."""
    z = problem.z
    sample = z[:: -(-len(z) // CHECKED_ROWS)]
    edges = int(len(z) / len(sample) * int((sample @ problem.keys.T >= problem.threshold).sum()))
    if z.is_cuda:
        there = int(torch.cuda.mem_get_info(z.device)[0])
    else:
        there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    needed = edges * (16 + (2 * z.shape[1] + 1) * z.element_size())
    if needed > there:
        raise ArgumentError(
            "epsilon",
            epsilon,
            f"gives about {edges:.1g} edges, which need {needed / 2**30:.0f} GiB of {there / 2**30:.0f}: "
            "raise it, or use reconnect, which lists no edges",
        )


@torch.no_grad()
def epsilon_for_degree(z: Tensor, mean_degree: float) -> Tensor:
    """Return the ε (a scalar) at which a row of z is similar to ``mean_degree`` other rows on average.

    It is estimated: random rows (at most 128, drawn from torch's generator) are compared with all rows or, if there are
    many, with random ones, and ε is the similarity that the wanted share of these pairs reaches. With many equal rows a
    node can have more neighbours than wanted, since they can't be told apart.

    Args:
        z: Rows of norm 1, or zero (n × q).
        mean_degree: The wanted number of neighbours, not counting the node itself.
    """
    check_number("mean_degree", mean_degree, above=0)
    n = len(z)
    rows, keys = (
        torch.arange(n, device=z.device) if n <= most else torch.randint(n, (most,), device=z.device)
        for most in (SAMPLED_ROWS, SAMPLED_KEYS)
    )
    similarity = z[rows] @ z[keys].T
    similarity.masked_fill_(rows[:, None] == keys, -1.0)
    wanted = min(max(round(mean_degree * similarity.numel() / n), 1), similarity.numel())
    reached = similarity.flatten().topk(wanted, sorted=False).values.min()
    return reached.clamp(LEAST_EPSILON, 1.0)
