"""The ε at which A* has a given number of neighbours per node, so that it is neither empty nor joins all pairs."""

import torch
from torch import Tensor

from gcnsl.checks import check_number

SAMPLED_ROWS, SAMPLED_KEYS = 128, 1 << 14
LEAST_EPSILON = 1e-3
"""ε if not even all positive similarities give the wanted degree."""


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
    rows = _sample(n, SAMPLED_ROWS, z.device)
    keys = _sample(n, SAMPLED_KEYS, z.device)
    similarity = z[rows] @ z[keys].T
    similarity.masked_fill_(rows[:, None] == keys, -1.0)
    wanted = min(max(round(mean_degree * similarity.numel() / n), 1), similarity.numel())
    reached = similarity.flatten().topk(wanted, sorted=False).values.min()
    return reached.clamp(LEAST_EPSILON, 1.0)


def _sample(n: int, most: int, device: torch.device) -> Tensor:
    return torch.arange(n, device=device) if n <= most else torch.randint(n, (most,), device=device)
