"""Which method suits a graph: several methods on the same splits, and whether their differences are more than noise."""

from __future__ import annotations

import itertools
import math
import sys
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import fmean, stdev
from typing import Any, NamedTuple

from torch import Tensor
from torch_geometric.data import Data

from gcnsl.checks import check_choice, check_seed, check_whole
from gcnsl.errors import GcnslError, InputError, Interrupted, TrainingDiverged
from gcnsl.evaluation.statistics import LEVEL, PairedDifference, Verdict, paired_differences
from gcnsl.graph import split_count, split_masks
from gcnsl.methods import Method
from gcnsl.nn.config import Folder
from gcnsl.runs.executor import HERE, Executor, WorkerLost
from gcnsl.runs.jobs import Failed, Finished, Job, Trainer
from gcnsl.training import METRICS, choose_device
from gcnsl.training.metrics import class_shares, measure

MAJORITY = "majority"
"""What the baseline is called beside the methods: the class that is most frequent among the training nodes."""


class Reached(NamedTuple):
    """What came of a run: all metrics on the test nodes, and how it was trained."""

    scores: dict[str, float]
    seconds: float
    epochs: int
    options: dict[str, Any]


@dataclass(frozen=True)
class Difference:
    """The mean difference between two methods, on the runs that both have finished; it is positive for a lead.

    Interval, p-value and verdict are explained in :mod:`gcnsl.evaluation.statistics`: they are corrected for the number
    of methods, and the first two are NaN for a single run. ``runs_needed`` estimates how many runs, each on a split of
    its own, would decide what is undecided; ``None`` if no number would.
    """

    better: str
    worse: str
    mean: float
    half_width: float
    p: float
    verdict: Verdict
    runs_needed: int | None


@dataclass
class Comparison:
    """What several methods, by name, reach on the same splits; it grows with every run.

    Attributes:
        test_share: n_test / n_train, mean over the splits; 0 if there is one split, and only seeds differ.
        metric: What the methods are ranked by.
        splits: How many splits there are: run r is on split r modulo this number.
        scores: All metrics on test nodes: by method, then by metric, one value per run. The baseline ``majority``,
            which always predicts the most frequent class, is among them.
        epochs: Number of epochs, one per run; like the following, for trained methods only.
        seconds: Of training, all runs together.
        options: Hyper-parameters.
        failures: Why a method was left out after a run failed; it is in none of the others.
    """

    test_share: float
    metric: str = "accuracy"
    splits: int = sys.maxsize
    scores: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    epochs: dict[str, list[int]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    options: dict[str, dict[str, Any]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    errors: list[type[GcnslError]] = field(default_factory=list, repr=False)

    def add(self, name: str, reached: Reached) -> None:
        """Record what a method reached in its next run."""
        self.add_scores(name, reached.scores)
        self.seconds[name] = self.seconds.get(name, 0.0) + reached.seconds
        self.epochs.setdefault(name, []).append(reached.epochs)
        self.options[name] = reached.options

    def add_scores(self, name: str, measured: Mapping[str, float]) -> None:
        """Record the metrics of a run."""
        for metric, value in measured.items():
            self.scores.setdefault(name, {}).setdefault(metric, []).append(value)

    def leave_out(self, name: str, run: int, error: GcnslError) -> None:
        """Forget a method's runs, because there won't be one for every split."""
        for results in (self.scores, self.seconds, self.epochs, self.options):
            results.pop(name, None)
        self.failures[name] = f"run {run}: {error}"
        self.errors.append(type(error))

    def values(self, name: str) -> list[float]:
        """The metric that ranks, one value per run."""
        return self.scores[name][self.metric]

    @property
    def ranking(self) -> list[str]:
        """The methods, and the baseline, by the mean of the metric, best first."""
        gains = {name: METRICS[self.metric].gain(self.mean(name)) for name in self.scores}
        return sorted(gains, key=lambda name: math.inf if math.isnan(gains[name]) else -gains[name])

    @property
    def winner(self) -> str | None:
        """The best of the methods that were trained; ``None`` before the first run."""
        return next((name for name in self.ranking if name in self.epochs), None)

    def mean(self, name: str) -> float:
        """Mean of the metric."""
        return fmean(self.values(name))

    def std(self, name: str) -> float:
        """Standard deviation over the runs (n - 1); NaN for one, or if the metric of one is not defined."""
        return stdev(self.values(name)) if len(self.values(name)) > 1 and math.isfinite(self.mean(name)) else math.nan

    @property
    def differences(self) -> list[Difference]:
        """Between every two methods, judged together (:func:`gcnsl.evaluation.statistics.paired_differences`)."""
        pairs = [*itertools.combinations(self.ranking, 2)]
        judged = paired_differences([self._leads(*pair) for pair in pairs], self.test_share)
        return [
            Difference(*pair, found.mean, found.half_width, found.p, found.verdict, self._runs_needed(found))
            for pair, found in zip(pairs, judged, strict=True)
        ]

    @property
    def leads(self) -> dict[str, Difference]:
        """The best method's leads over the others, by their names, best first."""
        best = self.ranking[:1]
        return {difference.worse: difference for difference in self.differences if [difference.better] == best}

    def _leads(self, better: str, worse: str) -> list[float]:
        """By how much one method is better than another, one value per split, or per seed on a single split."""
        gain, pairs = METRICS[self.metric].gain, zip(self.values(better), self.values(worse), strict=False)
        leads = [gain(a) - gain(b) for a, b in pairs]
        if self._repeats_splits(len(leads)):  # more seeds on the same splits are no evidence about other splits
            leads = [fmean(leads[split :: self.splits]) for split in range(self.splits)]
        return leads

    def _runs_needed(self, found: PairedDifference) -> int | None:
        return found.runs_needed(self.test_share) if found.verdict == "undecided" else None

    def verdict(self) -> str:
        """The comparison in a few sentences."""
        best = self.ranking[0]
        counted = "splits" if self._repeats_splits(len(self.values(best))) else "runs"
        return verdict_on(best, [*self.leads.values()], counted=counted, one_split=self.test_share == 0)

    def _repeats_splits(self, runs: int) -> bool:
        """Whether several splits have more than one run."""
        return 1 < self.splits < runs

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values, the methods by rank."""
        return {
            "metric": self.metric,
            "level": LEVEL,
            "one_split": self.test_share == 0,
            "methods": [
                {
                    "name": name,
                    "mean": self.mean(name),
                    "std": self.std(name),
                    "metrics": self.scores[name],
                    "seconds": self.seconds.get(name, 0.0),
                    "epochs": self.epochs.get(name, []),
                    "options": self.options.get(name, {}),
                }
                for name in self.ranking
            ],
            "differences": [asdict(difference) for difference in self.differences],
            "verdict": self.verdict() if self.epochs else None,
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
    metric: str = "accuracy",
    seed: int = 0,
    device: str = "auto",
    root: Folder = None,
    executor: Executor = HERE,
    on_run: Callable[[str, int], None] | None = None,
) -> Comparison:
    """Train every method on the splits of a graph, with seeds ``seed``, ``seed + 1``, ... of the weights.

    Run r is on split r, and begins again with the first split if there are fewer: with a single split, only the seeds
    differ. All methods begin a run before the next one, so that what is finished at any time can be compared. A method
    that fails, whatever the reason, is left out.

    Args:
        data: A graph with labels and masks (n × splits).
        methods: By name. Their inputs are prepared once, with the first seed.
        runs: How many trainings of each method.
        metric: What ranks the methods, a name of :data:`gcnsl.training.METRICS`. The best epoch of a run is chosen by
            the method's option ``monitor``; :func:`gcnsl.methods.resolve` can make it the same metric.
        device: See :func:`gcnsl.training.choose_device`.
        root: A folder with dataset files, searched first.
        executor: Who carries out the runs; each of its workers prepares the inputs once.
        on_run: Called with the method's name and the run's number after each run.

    Raises:
        ComparisonInterrupted: On Ctrl-C, with what is finished.
        GcnslError: If all methods fail; a TrainingDiverged or InputError if that is the reason of all.
    """
    check_whole("runs", runs, least=1)
    check_seed(seed)
    check_choice("metric", metric, METRICS)
    choose_device(device)
    result = Comparison(_test_share(data, runs), metric, split_count(data))
    trainer = Trainer(data, _reached, seed=seed, device=device, keep=len(methods), root=root)
    jobs = deque(
        Job(name=name, run=run, method=method, split=run % result.splits, seed=seed + run)
        for run in range(runs)
        for name, method in methods.items()
    )
    try:
        _carry_out(result, trainer, jobs, executor, on_run)
    except KeyboardInterrupt:
        done = sum(map(len, result.epochs.values()))
        raise ComparisonInterrupted(f"interrupted after {done} of {runs * len(methods)} runs", result) from None
    if not result.epochs:
        reasons = "; ".join(f"{name}, {why}" for name, why in result.failures.items())
        kinds = (kind for kind in (TrainingDiverged, InputError) if all(issubclass(e, kind) for e in result.errors))
        raise next(kinds, GcnslError)(reasons)
    return result


def _reached(done: Finished) -> Reached:
    history = done.fitted.history
    scores = done.fitted.measure(done.masks["test"])
    return Reached(scores, history.seconds, len(history), done.fitted.prepared.method.options())


def _carry_out(
    result: Comparison,
    trainer: Trainer[Reached],
    jobs: deque[Job],
    executor: Executor,
    on_run: Callable[[str, int], None] | None,
) -> None:
    """Carry out all runs; those of a method are recorded in their order, in which they are compared."""
    early: dict[tuple[str, int], Reached | Failed | WorkerLost] = {}
    following = Counter[str]()
    for job, reached in executor.each(trainer, jobs):
        early[job.name, job.run] = reached
        while (due := (job.name, following[job.name])) in early:
            following[job.name] += 1
            _add_majority(result, trainer.data, due[1])
            _record(result, *due, early.pop(due), jobs)
        if on_run is not None:
            on_run(job.name, job.run)


def _record(result: Comparison, name: str, run: int, reached: Reached | Failed | WorkerLost, jobs: deque[Job]) -> None:
    """Record a run; after a failure the method has no further ones."""
    if name in result.failures:
        return
    if isinstance(reached, Reached):
        result.add(name, reached)
        return
    result.leave_out(name, run, reached.error if isinstance(reached, Failed) else reached)
    for other in [other for other in jobs if other.name == name]:
        jobs.remove(other)


def _add_majority(result: Comparison, data: Data, run: int) -> None:
    """Record the baseline of a run, unless it is there."""
    if len(result.scores.get(MAJORITY, {}).get(result.metric, ())) <= run:
        masks = split_masks(data, run % result.splits)
        result.add_scores(MAJORITY, measure_majority(data.y, len(data.class_names), masks))


def _test_share(data: Data, runs: int) -> float:
    """n_test / n_train, averaged over the splits that will be used; 0 for one."""
    available = split_count(data)
    if not available:
        raise InputError("the graph has no masks: give it a split, such as gcnsl.datasets.with_random_split(data)")
    if available == 1:
        return 0.0
    splits = (split_masks(data, run) for run in range(min(runs, available)))
    return fmean(int(masks["test"].sum()) / int(masks["train"].sum()) for masks in splits)


def measure_majority(y: Tensor, num_classes: int, masks: dict[str, Tensor]) -> dict[str, float]:
    """All metrics on the test nodes, if every node has the training nodes' shares of the classes as probabilities.

    Args:
        y: Class numbers (n), -1 for unknown.
        num_classes: C.
        masks: Those of a split (n each), by part.
    """
    truth = y[masks["test"]].numpy()
    return measure(class_shares(y[masks["train"]].numpy(), num_classes, len(truth)), truth)


def verdict_on(best: str, leads: Sequence[Difference], *, counted: str = "runs", one_split: bool = False) -> str:
    """Say what the best method's leads over all others come to.

    Args:
        best: The name of the best method.
        leads: Its leads over the others.
        counted: ``"runs"`` or ``"splits"``, whichever would have to be more to settle what is undecided.
        one_split: Whether all runs are on one split, so that noise is what seeds do.
    """
    if not leads:
        return f"{best} has nothing to be compared with."
    if any(math.isnan(lead.mean) for lead in leads):
        return "The metric is not defined on some splits, whose test nodes lack a class: choose another metric."
    if any(math.isnan(lead.p) for lead in leads):
        return f"{best} leads, but a single run can't tell a lead from noise: use more runs."
    clear, equal, undecided = (
        [lead for lead in leads if lead.verdict == kind] for kind in ("clear", "equal", "undecided")
    )
    possible = [lead for lead in undecided if lead.runs_needed is not None]
    hopeless = [lead for lead in undecided if lead.runs_needed is None]
    noise = "noise between seeds" if one_split else "noise"
    sentences = [f"{best} leads; its lead over {_with_p(clear)} is more than {noise}." if clear else f"{best} leads."]
    if best == MAJORITY:
        sentences[0] = "No method does better than always guessing the most frequent class."
    if equal:
        sentences.append(f"{_listed(lead.worse for lead in equal)} {_is(equal)} within a point of it.")
    if possible:
        needed = _listed(f"{lead.runs_needed:,}" for lead in possible)
        unclear = f"{_with_p(possible)} {_is(possible)} not distinguishable from it with so few {counted}"
        sentences.append(f"{unclear}; about {needed} would settle it.")
    if hopeless:
        unclear = f"{_with_p(hopeless)} {_is(hopeless)} not distinguishable from it"
        sentences.append(f"{unclear}, and no number of runs on such splits would settle it.")
    return " ".join(sentences)


def p_text(value: float, *, equals: bool = False) -> str:
    """A p-value as statisticians write it: .03, < .001."""
    if math.isnan(value):
        return "–"
    if value < 0.001:
        return "< .001"
    text = "1" if value >= 0.995 else f"{value:.{2 if value >= 0.01 else 3}f}".removeprefix("0")
    return f"= {text}" if equals else text


def _is(leads: Sequence[Difference]) -> str:
    return "is" if len(leads) == 1 else "are"


def _with_p(leads: Iterable[Difference]) -> str:
    return _listed(f"{lead.worse} (p {p_text(lead.p, equals=True)})" for lead in leads)


def _listed(texts: Iterable[str]) -> str:
    *first, last = texts
    return " and ".join(filter(None, (", ".join(first), last)))
