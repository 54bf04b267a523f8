r"""Whether a difference between two methods is more than noise.

Two methods are compared on the same splits. Splits of one graph share most of their training nodes, so results on them
vary less than independent ones would, and the plain t-test finds differences where there are none. Nadeau and Bengio
(2003) widen the variance of the mean difference:

.. math:: s^2 \, \big(\tfrac1J + \tfrac{n_\mathrm{test}}{n_\mathrm{train}}\big)

with J splits and s² the variance of the differences (J - 1 degrees of freedom).
"""

import math
from collections.abc import Sequence
from statistics import fmean, stdev
from typing import NamedTuple

from scipy.stats import t as student

LEVEL = 0.05
"""A difference with a smaller p-value is called more than noise; intervals hold with probability 1 - LEVEL."""


class PairedDifference(NamedTuple):
    """The mean of paired differences, and what noise can do to it."""

    mean: float
    half_width: float
    """Half of the corrected 95 % interval around the mean; NaN for a single pair."""
    p: float
    """The corrected two-sided p-value that the mean is zero; NaN for a single pair."""


def paired_difference(differences: Sequence[float], test_share: float) -> PairedDifference:
    """Judge the mean of paired differences, one per split.

    Args:
        differences: One per split.
        test_share: n_test / n_train, the number of test nodes per training node.

    Returns:
        With all differences equal, the half-width is 0 and p is 1 if they are zero, else 0.
    """
    count, mean = len(differences), fmean(differences)
    if count < 2:
        return PairedDifference(mean, math.nan, math.nan)
    error = math.sqrt(1 / count + test_share) * stdev(differences)
    if error == 0:
        return PairedDifference(mean, 0.0, 1.0 if mean == 0 else 0.0)
    half_width = float(student.ppf(1 - LEVEL / 2, count - 1)) * error
    return PairedDifference(mean, half_width, float(2 * student.sf(abs(mean / error), count - 1)))
