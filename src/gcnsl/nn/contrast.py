"""A supervised contrastive loss, which draws nodes of one class together and the others apart."""

import torch
from torch import Tensor
from torch.nn import functional

MOST_ANCHORS, MOST_OTHERS = 1 << 12, 1 << 14


def contrastive_loss(z: Tensor, y: Tensor, *, classes: int, temperature: float) -> Tensor:
    r"""How far each row is from the other rows of its class, compared with all other rows (Khosla et al., 2020).

    .. math::
        L = -\,\mathrm{mean}_i \log \frac{\sum_{j \ne i,\, y_j = y_i} \exp(z_i \cdot z_j / \tau)}
            {\sum_{j \ne i} \exp(z_i \cdot z_j / \tau)}

    Rows whose class has no other row are left out of the mean. Of more than 4,096 rows i or 16,384 rows j, as many are
    drawn at random.

    Args:
        z: Unit rows of labelled nodes (m × q).
        y: Their classes (m).
        classes: Number of classes.
        temperature: τ.
    """
    anchors, others = _some(z, MOST_ANCHORS), _some(z, MOST_OTHERS)
    # (s - 1) / τ instead of s / τ, which cancels in the quotient, so that no term of the sums exceeds 1
    exponents = torch.addmm(z.new_full((1,), -1 / temperature), z[anchors] / temperature, z[others].T)
    _leave_itself_out(exponents, anchors, others, len(z))
    by_class = exponents.exp() @ functional.one_hot(y[others], classes).to(z.dtype)
    alike = by_class.gather(1, y[anchors][:, None])[:, 0]
    counted = alike > 0
    distance = torch.where(counted, by_class.sum(dim=1), 1.0).log() - torch.where(counted, alike, 1.0).log()
    return distance.sum() / counted.sum().clamp(min=1)


def _some(z: Tensor, most: int) -> Tensor:
    n = len(z)
    return torch.arange(n, device=z.device) if n <= most else torch.randperm(n, device=z.device)[:most]


def _leave_itself_out(exponents: Tensor, anchors: Tensor, others: Tensor, n: int) -> None:
    """Set the exponents (i, j) with ``anchors[i] == others[j]`` to -∞; a GPU is not waited for."""
    place = torch.full((n,), -1, device=others.device)
    place[others] = torch.arange(len(others), device=others.device)
    column = place[anchors][:, None]
    added = exponents.new_zeros(column.shape).masked_fill(column >= 0, -torch.inf)
    exponents.scatter_add_(1, column.clamp(min=0), added)
