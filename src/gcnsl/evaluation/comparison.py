"""Which method suits a graph: several methods on the same splits, and whether their differences are more than noise."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from statistics import fmean, stdev
from typing import Any

from torch_geometric.data import Data

from gcnsl.checks import check_whole
from gcnsl.errors import InputError, Interrupted, TrainingDiverged
from gcnsl.evaluation.outcome import Outcome, Preparations, run_split
from gcnsl.evaluation.statistics import LEVEL, paired_difference
from gcnsl.graph import split_count, split_masks
from gcnsl.methods import Method
from gcnsl.methods.registry import Folder
from gcnsl.training import Epoch, choose_device


@dataclass(frozen=True)
class Difference:
    """The mean difference in test accuracy on the splits that two methods have finished.

    ``p`` is that of the corrected test (:func:`gcnsl.evaluation.paired_difference`); NaN for a single split.
    """

    better: str
    worse: str
    mean: float
    p: float


@dataclass
class Comparison:
    """What several methods, by name, reach on the same splits; it grows with every run.

    Attributes:
        test_share: n_test / n_train, mean over the splits.
        accuracy, epochs: Test accuracy and number of epochs, one per split.
        seconds: Of training, all splits together.
        options: Hyper-parameters.
        failures: Why a method was left out after a run diverged; it is in none of the others.
    """

    test_share: float
    accuracy: dict[str, list[float]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    epochs: dict[str, list[int]] = field(default_factory=dict)
    options: dict[str, dict[str, Any]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, outcome: Outcome) -> None:
        """Record what a method reached on its next split."""
        self.accuracy.setdefault(name, []).append(outcome.accuracy["test"])
        self.seconds[name] = self.seconds.get(name, 0.0) + outcome.fitted.history.seconds
        self.epochs.setdefault(name, []).append(len(outcome.fitted.history))
        self.options[name] = outcome.fitted.prepared.method.options()

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
        """Between every two methods."""
        return [self._difference(better, worse) for better, worse in itertools.combinations(self.ranking, 2)]

    def against_best(self, name: str) -> Difference | None:
        """The best method's lead over this one; None for the best itself."""
        best = self.ranking[0]
        return None if name == best else self._difference(best, name)

    def _difference(self, better: str, worse: str) -> Difference:
        pairs = zip(self.accuracy[better], self.accuracy[worse], strict=False)
        found = paired_difference([a - b for a, b in pairs], self.test_share)
        return Difference(better, worse, found.mean, found.p)

    def verdict(self) -> str:
        """The comparison in a sentence."""
        best, *others = self.ranking
        if not others:
            return f"{best} has nothing to be compared with."
        leads = [self._difference(best, name) for name in others]
        if any(math.isnan(lead.p) for lead in leads):
            return f"{best} leads, but a single run can't tell a lead from noise: use more runs."
        clear = _listed(lead for lead in leads if lead.p < LEVEL)
        unclear = _listed(lead for lead in leads if lead.p >= LEVEL)
        if not unclear:
            return f"{best} leads; its lead over {clear} is more than noise."
        if not clear:
            return f"{best} leads, but its lead over {unclear} may be noise."
        return f"{best} leads; its lead over {clear} is more than noise, over {unclear} it may be noise."

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values, the methods by rank."""
        parts = ("accuracy", "seconds", "epochs", "options")
        return {
            "level": LEVEL,
            "methods": [
                {"name": name, "mean": self.mean(name), "std": self.std(name)}
                | {part: getattr(self, part)[name] for part in parts}
                for name in self.ranking
            ],
            "differences": [asdict(difference) for difference in self.differences],
            "verdict": self.verdict() if self.accuracy else None,
            "failures": self.failures,
        }


class ComparisonInterrupted(Interrupted):
    """Ctrl-C during a comparison; ``finished`` is what there is so far."""

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
    root: Folder = None,
    on_run: Callable[[str, int], None] | None = None,
    on_epoch: Callable[[Epoch], None] | None = None,
) -> Comparison:
    """Train every method on the first ``runs`` splits of a graph, with seeds ``seed``, ``seed + 1``, ...

    All methods are trained on one split before the next begins, so that what is finished at any time can be compared.
    A method that diverges is left out.

    Args:
        data: A graph with labels and masks (n × runs).
        methods: By name. Their inputs are prepared once, with the first seed.
        device: See :func:`gcnsl.training.choose_device`.
        root: A folder with dataset files, searched first.
        on_run: Called with the method's name and the run's number before each run.
        on_epoch: Called after each epoch of each run.

    Raises:
        ComparisonInterrupted: On Ctrl-C, with what is finished.
        TrainingDiverged: If all methods do.
    """
    result = Comparison(_test_share(data, runs))
    options = {"seed": seed, "device": choose_device(device), "root": root}
    prepared = {name: Preparations(method, data, **options) for name, method in methods.items()}
    try:
        for run, name in itertools.product(range(runs), methods):
            if name in result.failures:
                continue
            if on_run is not None:
                on_run(name, run)
            try:
                result.add(name, run_split(prepared[name].on(run), run=run, seed=seed + run, on_epoch=on_epoch))
            except TrainingDiverged as error:
                result.leave_out(name, f"run {run}: {error}")
    except KeyboardInterrupt:
        done = sum(map(len, result.accuracy.values()))
        raise ComparisonInterrupted(f"interrupted after {done} of {runs * len(methods)} runs", result) from None
    if not result.accuracy:
        raise TrainingDiverged("; ".join(f"{name}, {why}" for name, why in result.failures.items()))
    return result


def p_text(value: float, *, equals: bool = False) -> str:
    """A p-value as statisticians write it: .03, < .001."""
    if math.isnan(value):
        return "–"
    if value < 0.001:
        return "< .001"
    text = "1" if value >= 0.995 else f"{value:.{2 if value >= 0.01 else 3}f}".removeprefix("0")
    return f"= {text}" if equals else text


def _listed(leads: Iterable[Difference]) -> str:
    parts = [f"{lead.worse} (p {p_text(lead.p, equals=True)})" for lead in leads]
    return " and ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:])))


def _test_share(data: Data, runs: int) -> float:
    """n_test / n_train, averaged over the splits that will be used."""
    available = split_count(data)
    if not available:
        raise InputError("the graph has no masks: give it a split, such as gcnsl.datasets.with_random_split(data)")
    check_whole("runs", runs, least=1, most=available, why=f"the graph has {available} split(s)")
    splits = (split_masks(data, run) for run in range(runs))
    return fmean(int(masks["test"].sum()) / int(masks["train"].sum()) for masks in splits)
