r"""Whether a difference between two methods is more than noise.

Two methods are compared on the same splits. Splits of one graph share most of their training nodes, so results on them
vary less than independent ones would, and the plain t-test finds differences where there are none. Nadeau and Bengio
(2003) widen the variance of the mean difference:

.. math:: s^2 \, \big(\tfrac1J + \tfrac{n_\mathrm{test}}{n_\mathrm{train}}\big)

with J splits and s² the variance of the differences (J - 1 degrees of freedom). If all runs are on one split and only
their seeds differ, no training sets overlap in part, and the second term is 0: the difference is then one on this
split, and says nothing about others.

Among many equal methods, the best and the worst of them differ by chance. So where several are compared, the p-values
of all pairs are corrected together, as by Holm (1979): the smallest of m is multiplied by m, the next by m - 1, and so
on, and none is smaller than the one before. Then the probability that any of the equal ones is called better is at most
.05, also if it is the best that is compared with the others. Each interval has the level that its p-value is held to:
.05 divided by what the p-value was multiplied by.

A difference is one of three things:

- ``equal``, if its whole interval lies within ±1 point (0.01);
- ``clear``, if the interval does not contain zero, which is to say p < .05;
- ``undecided`` otherwise: there are too few runs to tell.
"""

import math
from bisect import bisect_left
from collections.abc import Sequence
from statistics import fmean, stdev
from typing import Literal, NamedTuple

from scipy.special import stdtr, stdtrit

LEVEL = 0.05
"""A difference with a smaller corrected p-value is called more than noise."""
POINT = 0.01
"""Differences that are certainly smaller do not matter."""
_MOST_RUNS = 100_000

Verdict = Literal["equal", "clear", "undecided"]


class PairedDifference(NamedTuple):
    """The mean of paired differences, and what noise can do to it."""

    mean: float
    half_width: float
    """Half of the interval around the mean; NaN for a single pair."""
    p: float
    """The corrected two-sided p-value that the mean is zero; NaN for a single pair."""
    std: float
    """Standard deviation of the differences; NaN for a single pair."""
    factor: float = 1.0
    """What the p-value was multiplied by because there are further comparisons."""

    @property
    def verdict(self) -> Verdict:
        """What can be said of it."""
        if abs(self.mean) + self.half_width <= POINT:
            return "equal"
        return "clear" if self.p < LEVEL else "undecided"

    def runs_needed(self, test_share: float) -> int | None:
        """An estimate of how many runs would decide it, if mean and standard deviation stay what they are.

        It is the smallest J with t · s · √(1/J + test_share) ≤ w, where t is the quantile of Student's distribution
        with J - 1 degrees of freedom at the level of the interval, and w a half-width that is narrow enough: ``|mean|``
        excludes zero, ``0.01 - |mean|`` keeps the interval within ±1 point, and the larger of the two will do. ``None``
        if no number of runs is enough, because the second term does not shrink, or if there is a single run to estimate
        from.
        """
        wanted = max(abs(self.mean), POINT - abs(self.mean))

        def enough(runs: int) -> bool:
            return _half_width(self.std, runs, test_share, self.factor) <= wanted

        return 2 + bisect_left(range(2, _MOST_RUNS), True, key=enough) if enough(_MOST_RUNS) else None


def paired_difference(differences: Sequence[float], test_share: float) -> PairedDifference:
    """Judge the mean of paired differences, one per split.

    Args:
        differences: One per split.
        test_share: n_test / n_train, the number of test nodes per training node; 0 if all runs are on one split.

    Returns:
        With all differences equal, the half-width is 0 and p is 1 if they are zero, else 0. With a single one, or if
        one is not defined, all but the mean are NaN.
    """
    return paired_differences([differences], test_share)[0]


def paired_differences(samples: Sequence[Sequence[float]], test_share: float) -> list[PairedDifference]:
    """Judge several means of paired differences together: :func:`paired_difference`, with Holm's correction."""
    plain = [_uncorrected(differences, test_share) for differences in samples]
    order = sorted((place for place, found in enumerate(plain) if found.p >= 0), key=lambda place: plain[place].p)
    judged, least = list(plain), 0.0
    for rank, place in enumerate(order):
        found, others = plain[place], len(order) - rank
        least = max(least, others * found.p)
        factor = least / found.p if found.p > 0 else others
        half_width = _half_width(found.std, len(samples[place]), test_share, factor)
        judged[place] = found._replace(half_width=half_width, p=min(1.0, least), factor=factor)
    return judged


def _uncorrected(differences: Sequence[float], test_share: float) -> PairedDifference:
    """The mean, the p-value and the standard deviation, without an interval."""
    runs, mean = len(differences), fmean(differences)
    if runs < 2 or not math.isfinite(mean):
        return PairedDifference(mean, math.nan, math.nan, math.nan)
    std = stdev(differences)
    error = math.sqrt(1 / runs + test_share) * std
    if error == 0:
        return PairedDifference(mean, math.nan, 1.0 if mean == 0 else 0.0, std)
    return PairedDifference(mean, math.nan, float(2 * stdtr(runs - 1, -abs(mean / error))), std)


def _half_width(std: float, runs: int, test_share: float, factor: float) -> float:
    return float(-stdtrit(runs - 1, LEVEL / (2 * factor))) * std * math.sqrt(1 / runs + test_share)
