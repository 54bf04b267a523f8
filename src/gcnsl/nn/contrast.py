"""A supervised contrastive loss, which draws nodes of one class together and the others apart."""

import torch
from torch import Tensor

MOST_ANCHORS, MOST_OTHERS = 1 << 12, 1 << 14


def contrastive_loss(z: Tensor, y: Tensor, *, temperature: float) -> Tensor:
    r"""How far each row is from the other rows of its class, compared with all other rows (Khosla et al., 2020).

    .. math::
        L = -\,\mathrm{mean}_i \log \frac{\sum_{j \ne i,\, y_j = y_i} \exp(z_i \cdot z_j / \tau)}
            {\sum_{j \ne i} \exp(z_i \cdot z_j / \tau)}

    Rows whose class has no other row are left out of the mean. Of more than 4,096 rows i or 16,384 rows j, as many are
    drawn at random.

    Args:
        z: Unit rows of labelled nodes (m × q).
        y: Their classes (m).
        temperature: τ.
    """
    if len(z) < 2:
        return z.sum() * 0
    anchors, others = _some(z, MOST_ANCHORS), _some(z, MOST_OTHERS)
    itself = anchors[:, None] == others
    apart = (z[anchors] @ z[others].T / temperature).masked_fill(itself, -torch.inf)
    alike = (y[anchors][:, None] == y[others]) & ~itself
    counted = alike.any(dim=1)  # for the others both sums are the same, so that their distance is 0
    together = apart.masked_fill(~alike & counted[:, None], -torch.inf).logsumexp(dim=1)
    return (apart.logsumexp(dim=1) - together).sum() / counted.sum().clamp(min=1)


def _some(z: Tensor, most: int) -> Tensor:
    n = len(z)
    return torch.arange(n, device=z.device) if n <= most else torch.randperm(n, device=z.device)[:most]
