"""Which method suits a graph: several methods on the same splits, and whether their differences are more than noise."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, stdev
from typing import Any

from scipy.stats import t as student
from torch_geometric.data import Data

from gcnsl.errors import InputError
from gcnsl.methods import Method, run_split, split_masks
from gcnsl.training import Epoch


@dataclass(frozen=True)
class Difference:
    """The mean difference in test accuracy between two methods, and how likely noise alone makes one as large.

    Attributes:
        better, worse: The methods' names.
        mean: Of the differences, one a split.
        p: Of the corrected test (see :func:`corrected_t_test`); NaN for a single split.
    """

    better: str
    worse: str
    mean: float
    p: float


@dataclass
class Comparison:
    """Test accuracies by method, one a split, best method first, and the tests between them."""

    accuracy: dict[str, list[float]]
    seconds: dict[str, float]
    epochs: dict[str, list[int]]
    options: dict[str, dict[str, Any]] = field(default_factory=dict)
    differences: list[Difference] = field(default_factory=list)

    def mean(self, name: str) -> float:
        """Mean test accuracy."""
        return fmean(self.accuracy[name])

    def std(self, name: str) -> float:
        """Standard deviation over the splits (n - 1); NaN for one."""
        return stdev(self.accuracy[name]) if len(self.accuracy[name]) > 1 else math.nan

    def against_best(self, name: str) -> Difference | None:
        """The best method's lead over this one; None for the best itself."""
        best = next(iter(self.accuracy))
        return next((d for d in self.differences if (d.better, d.worse) == (best, name)), None)


def compare(
    data: Data,
    methods: Mapping[str, Method],
    *,
    runs: int = 10,
    seed: int = 0,
    device: str = "auto",
    on_run: Callable[[str, int], None] | None = None,
    on_epoch: Callable[[Epoch], None] | None = None,
) -> Comparison:
    """Train every method on the first ``runs`` splits of a graph, with seeds ``seed``, ``seed + 1``, ...

    Args:
        data: A graph with labels and masks (n × runs).
        methods: By name.
        runs: How many splits.
        seed: Of the first run; the inputs of all runs are prepared with it.
        device: See :func:`gcnsl.training.choose_device`.
        on_run: Called with the method's name and the run's number before each run.
        on_epoch: Called after each epoch of each run.
    """
    available = data.train_mask.shape[1] if data.train_mask.dim() == 2 else 1
    if not 1 <= runs <= available:
        raise InputError(f"runs({runs}) must be from 1 to {available}: the graph has {available} split(s)")
    result = Comparison({}, {}, {})
    for name, method in methods.items():
        inputs = method.config.prepare(data, seed=seed)
        outcomes = []
        for run in range(runs):
            if on_run is not None:
                on_run(name, run)
            outcomes.append(run_split(method, data, inputs, run=run, seed=seed + run, device=device, on_epoch=on_epoch))
        result.accuracy[name] = [outcome.accuracy["test"] for outcome in outcomes]
        result.seconds[name] = sum(outcome.history.seconds for outcome in outcomes)
        result.epochs[name] = [len(outcome.history) for outcome in outcomes]
        result.options[name] = method.options()
    result.accuracy = dict(sorted(result.accuracy.items(), key=lambda item: -fmean(item[1])))
    sizes = [split_masks(data, run) for run in range(runs)]
    share = fmean(int(masks["test"].sum()) / int(masks["train"].sum()) for masks in sizes)
    result.differences = [
        Difference(better, worse, result.mean(better) - result.mean(worse), _p_value(result, better, worse, share))
        for better, worse in itertools.combinations(result.accuracy, 2)
    ]
    return result


def corrected_t_test(differences: Sequence[float], test_share: float) -> float:
    r"""Two-sided p-value that the mean of paired differences is zero, for training sets that overlap.

    Splits of one graph share most of their training nodes, so their results vary less than those of independent ones
    and the plain t-test finds differences where there are none. Nadeau and Bengio (2003) widen the variance:

    .. math:: t = \bar d \,\Big/ \sqrt{\big(\tfrac1J + \tfrac{n_\mathrm{test}}{n_\mathrm{train}}\big)\, s^2}

    with J splits, s² the variance of the differences (J - 1 degrees of freedom).

    Args:
        differences: One a split.
        test_share: n_test / n_train.

    Returns:
        NaN for a single split; 1 where all differences are zero; 0 where all are the same and not zero.
    """
    count = len(differences)
    if count < 2:
        return math.nan
    mean, spread = fmean(differences), stdev(differences)
    if spread == 0:
        return 1.0 if mean == 0 else 0.0
    statistic = mean / math.sqrt((1 / count + test_share) * spread**2)
    return float(2 * student.sf(abs(statistic), count - 1))


def _p_value(result: Comparison, better: str, worse: str, test_share: float) -> float:
    pairs = zip(result.accuracy[better], result.accuracy[worse], strict=True)
    return corrected_t_test([a - b for a, b in pairs], test_share)
