"""A* without loops, from A* with loops: what a row has from itself is subtracted, whatever the back end.

With d and o of the graph with loops, and s_ii the weight of a loop (n, about 1; 0 for a zero row),

    d'_i = d_i − s_ii                o'_i = (d_i o_i − s_ii h_i) / d'_i

In the backward pass, a back end that is given d' and o' instead of d and o returns the gradients of a graph without
loops, except that it also counts the pairs (i, i), whose part is known: δ_ii = (g_i·h_i − g_i·o'_i) / d'_i.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from gcnsl.reconnection.problem import Averages, Gradients, Problem


def without_loops(problem: Problem, averages: Averages) -> Averages:
    """Return o', which takes the place of o in memory, and d'; both are 0 for a row that keeps no other row."""
    own, own_h = _loops(problem), _own_keys(problem, problem.h)
    degree = averages.degree - own
    alone = degree < problem.threshold / 2  # another row would add at least the threshold: the rest is rounding
    out = averages.out.mul_(averages.degree[:, None]).addcmul_(own[:, None], own_h, value=-1)
    out.div_(torch.where(alone, 1.0, degree)[:, None]).masked_fill_(alone[:, None], 0.0)
    return averages._replace(out=out, degree=torch.where(alone, 0.0, degree))


def gradients_without_loops(
    backward: Callable[[Problem, Averages, Tensor], Gradients], problem: Problem, averages: Averages, grad: Tensor
) -> Gradients:
    """Return the gradients, given a back end's backward pass, o', d' and g = ∂L/∂o'."""
    alone = averages.degree == 0  # such a row passes nothing on: its gradient is divided by d' = ∞
    averages = averages._replace(degree=torch.where(alone, torch.inf, averages.degree))
    counted = backward(problem, averages, grad)
    own, own_h = _loops(problem), _own_keys(problem, problem.h)
    delta = (own_h - averages.out).mul_(grad).sum(dim=1) / averages.degree * (own > 0)
    _own_keys(problem, counted.h).addcmul_((own / averages.degree)[:, None], grad, value=-1)
    if problem.square:
        z = counted.z - 2 * delta[:, None] * problem.z  # z_i is on both sides of its pair
        return Gradients(z, z, counted.h)
    _own_keys(problem, counted.keys).sub_(delta[:, None] * problem.z)
    return counted._replace(z=counted.z - delta[:, None] * problem.z)


def _own_keys(problem: Problem, of_keys: Tensor) -> Tensor:
    """Given a matrix with one row per key, return a view of the rows of those keys that are the rows of z."""
    assert problem.first_key is not None
    return of_keys[problem.first_key : problem.first_key + len(problem.z)]


def _loops(problem: Problem) -> Tensor:
    squared = (problem.z * problem.z).sum(dim=1)
    return torch.where(squared >= problem.threshold, squared, 0.0)
