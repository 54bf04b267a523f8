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

from gcnsl.errors import InputError, Interrupted, TrainingDiverged
from gcnsl.methods import Method, Outcome, run_split, split_count, split_masks
from gcnsl.nn import Input
from gcnsl.training import Epoch


@dataclass(frozen=True)
class Difference:
    """The mean difference in test accuracy between two methods, and how likely noise alone makes one as large.

    Attributes:
        better, worse: The methods' names.
        mean: Of the differences, one for each split that both have finished.
        p: Of the corrected test (see :func:`corrected_t_test`); NaN for a single split.
    """

    better: str
    worse: str
    mean: float
    p: float


@dataclass
class Comparison:
    """What several methods reach on the same splits; it grows with every run.

    Attributes:
        test_share: n_test / n_train, mean over the splits.
        accuracy: Test accuracies by method, one a split.
        seconds: Of training, all splits together, by method.
        epochs: By method, one a split.
        options: Hyper-parameters by method.
        failures: Why a method was left out after some of its runs diverged, by method; it is in none of the others.
    """

    test_share: float
    accuracy: dict[str, list[float]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    epochs: dict[str, list[int]] = field(default_factory=dict)
    options: dict[str, dict[str, Any]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, method: Method, outcome: Outcome) -> None:
        """Note what a method reached on its next split."""
        self.accuracy.setdefault(name, []).append(outcome.accuracy["test"])
        self.seconds[name] = self.seconds.get(name, 0.0) + outcome.history.seconds
        self.epochs.setdefault(name, []).append(len(outcome.history))
        self.options[name] = method.options()

    def leave_out(self, name: str, why: str) -> None:
        """Forget a method's runs, because there won't be one for every split."""
        for results in (self.accuracy, self.seconds, self.epochs, self.options):
            results.pop(name, None)
        self.failures[name] = why

    @property
    def ranking(self) -> list[str]:
        """The methods by mean test accuracy, best first."""
        return sorted(self.accuracy, key=lambda name: -self.mean(name))

    def mean(self, name: str) -> float:
        """Mean test accuracy."""
        return fmean(self.accuracy[name])

    def std(self, name: str) -> float:
        """Standard deviation over the splits (n - 1); NaN for one."""
        return stdev(self.accuracy[name]) if len(self.accuracy[name]) > 1 else math.nan

    @property
    def differences(self) -> list[Difference]:
        """Between every two methods, on the splits that both have finished."""
        return [self._difference(better, worse) for better, worse in itertools.combinations(self.ranking, 2)]

    def against_best(self, name: str) -> Difference | None:
        """The best method's lead over this one; None for the best itself."""
        best = self.ranking[0]
        return None if name == best else self._difference(best, name)

    def _difference(self, better: str, worse: str) -> Difference:
        pairs = zip(self.accuracy[better], self.accuracy[worse], strict=False)
        differences = [a - b for a, b in pairs]
        return Difference(better, worse, fmean(differences), corrected_t_test(differences, self.test_share))


class ComparisonInterrupted(Interrupted):
    """Ctrl-C during a comparison.

    Attributes:
        finished: What there is so far.
    """

    def __init__(self, message: str, finished: Comparison) -> None:
        super().__init__(message)
        self.finished = finished


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

    All methods are trained on one split before the next is begun, so that what is finished at any time can be compared.
    A method that diverges is left out.

    Args:
        data: A graph with labels and masks (n × runs).
        methods: By name.
        runs: How many splits.
        seed: Of the first run; the inputs of all runs are prepared with it.
        device: See :func:`gcnsl.training.choose_device`.
        on_run: Called with the method's name and the run's number before each run.
        on_epoch: Called after each epoch of each run.

    Raises:
        ComparisonInterrupted: On Ctrl-C, with what is finished.
        TrainingDiverged: If all methods do.
    """
    result = Comparison(_test_share(data, runs))
    inputs: dict[str, tuple[Input, ...]] = {}
    try:
        for run, name in itertools.product(range(runs), methods):
            if name in result.failures:
                continue
            method = methods[name]
            if on_run is not None:
                on_run(name, run)
            if name not in inputs:
                inputs[name] = method.config.prepare(data, seed=seed)
            try:
                outcome = run_split(
                    method, data, inputs[name], run=run, seed=seed + run, device=device, on_epoch=on_epoch
                )
            except TrainingDiverged as error:
                result.leave_out(name, f"run {run}: {error}")
                continue
            result.add(name, method, outcome)
    except KeyboardInterrupt:
        done = sum(map(len, result.accuracy.values()))
        raise ComparisonInterrupted(f"interrupted after {done} of {runs * len(methods)} runs", result) from None
    if not result.accuracy:
        raise TrainingDiverged("; ".join(f"{name}, {why}" for name, why in result.failures.items()))
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


def _test_share(data: Data, runs: int) -> float:
    """n_test / n_train, mean over the splits that are to be used."""
    available = split_count(data)
    if not 1 <= runs <= available:
        raise InputError(f"runs({runs}) must be from 1 to {available}: the graph has {available} split(s)")
    sizes = [split_masks(data, run) for run in range(runs)]
    return fmean(int(masks["test"].sum()) / int(masks["train"].sum()) for masks in sizes)
