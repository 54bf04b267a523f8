"""Which method suits a graph: several methods on the same splits, and whether their differences are more than noise."""

import itertools
import math
import sys
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from statistics import fmean, stdev
from typing import Any, NamedTuple

from torch import Tensor
from torch_geometric.data import Data

from gcnsl.checks import check_choice, check_seed, check_whole
from gcnsl.errors import GcnslError, InputError, Interrupted, TrainingDiverged
from gcnsl.evaluation.statistics import LEVEL, PairedDifference, paired_differences
from gcnsl.graph import split_count, split_masks
from gcnsl.methods import Method
from gcnsl.nn.config import Folder
from gcnsl.runs.executor import HERE, Executor
from gcnsl.runs.jobs import Failed, Finished, Job, Trainer
from gcnsl.training import METRICS, choose_device
from gcnsl.training.metrics import class_shares, measure

MAJORITY = "majority"
"""What the baseline is called beside the methods: the class that is most frequent among the training nodes."""


class Reached(NamedTuple):
    """What came of a run: all metrics on the test nodes, and how it was trained."""

    scores: dict[str, float]
    seconds: float = 0.0
    epochs: int = 0
    options: Mapping[str, Any] = {}


@dataclass
class Comparison:
    """What several methods, by name, reach on the same splits; it grows with every run.

    Attributes:
        test_share: n_test / n_train, mean over the splits; 0 if there is one split, and only seeds differ.
        metric: What the methods are ranked by.
        splits: How many splits there are: run r is on split r modulo this number.
        runs: By method, then by number, what came of each run. The baseline ``majority``, which always predicts the
            most frequent class, is among the methods.
        failures: Why a method was left out after a run failed; it has no runs.
    """

    test_share: float
    metric: str = "accuracy"
    splits: int = sys.maxsize
    runs: dict[str, dict[int, Reached]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)

    def values(self, name: str, metric: str | None = None) -> list[float]:
        """A metric, by default the one that ranks, one value per run."""
        return [reached.scores[metric or self.metric] for _, reached in sorted(self.runs[name].items())]

    @property
    def ranking(self) -> list[str]:
        """The methods, and the baseline, by the mean of the metric, best first."""
        gains = {name: METRICS[self.metric].gain(self.mean(name)) for name in self.runs}
        return sorted(gains, key=lambda name: math.inf if math.isnan(gains[name]) else -gains[name])

    @property
    def winner(self) -> str | None:
        """The best of the methods that were trained; ``None`` before the first run."""
        return next((name for name in self.ranking if name != MAJORITY), None)

    def mean(self, name: str) -> float:
        """Mean of the metric."""
        return fmean(self.values(name))

    def std(self, name: str) -> float:
        """Standard deviation over the runs (n - 1); NaN for one, or if the metric of one is not defined."""
        return stdev(self.values(name)) if len(self.runs[name]) > 1 and math.isfinite(self.mean(name)) else math.nan

    @property
    def differences(self) -> dict[tuple[str, str], PairedDifference]:
        """Between every two methods, the better one first, on the runs that both have finished.

        A difference is positive for a lead. All are judged together, so that they are corrected for the number of
        methods (:func:`gcnsl.evaluation.statistics.paired_differences`).
        """
        pairs = [*itertools.combinations(self.ranking, 2)]
        judged = paired_differences([self._leads(*pair) for pair in pairs], self.test_share)
        return dict(zip(pairs, judged, strict=True))

    @property
    def leads(self) -> dict[str, PairedDifference]:
        """The best method's leads over the others, by their names, best first."""
        best = self.ranking[:1]
        return {worse: found for (better, worse), found in self.differences.items() if [better] == best}

    def _leads(self, better: str, worse: str) -> list[float]:
        """By how much one method is better than another, one value per split, or per seed on a single split."""
        gain, own, other = METRICS[self.metric].gain, self.runs[better], self.runs[worse]
        leads = defaultdict(list)  # more seeds on the same splits are no evidence about other splits
        for run in sorted(own.keys() & other.keys()):
            lead = gain(own[run].scores[self.metric]) - gain(other[run].scores[self.metric])
            leads[run if self.splits == 1 else run % self.splits].append(lead)
        return [fmean(values) for values in leads.values()]

    def verdict(self) -> str:
        """The comparison in a few sentences."""
        best = self.ranking[0]
        counted = "splits" if 1 < self.splits < len(self.runs[best]) else "runs"
        return verdict_on(best, self.leads, self.test_share, counted=counted)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values, the methods by rank."""
        return {
            "metric": self.metric,
            "level": LEVEL,
            "one_split": self.test_share == 0,
            "methods": [self._method(name) for name in self.ranking],
            "differences": [
                {
                    "better": better,
                    "worse": worse,
                    **{name: getattr(found, name) for name in ("mean", "half_width", "p", "verdict")},
                    "runs_needed": found.runs_needed(self.test_share) if found.verdict == "undecided" else None,
                }
                for (better, worse), found in self.differences.items()
            ],
            "verdict": self.verdict() if self.winner else None,
            "failures": self.failures,
        }

    def _method(self, name: str) -> dict[str, Any]:
        runs = [reached for _, reached in sorted(self.runs[name].items())]
        return {
            "name": name,
            "mean": self.mean(name),
            "std": self.std(name),
            "metrics": {metric: self.values(name, metric) for metric in runs[0].scores},
            "seconds": sum(run.seconds for run in runs),
            "epochs": [] if name == MAJORITY else [run.epochs for run in runs],
            "options": dict(runs[-1].options),
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
    result, kinds = Comparison(_test_share(data, runs), metric, split_count(data)), set[type[GcnslError]]()
    trainer = Trainer(data, _reached, seed=seed, device=device, keep=len(methods), root=root)
    jobs = deque(
        Job(name=name, run=run, method=method, split=run % result.splits, seed=seed + run)
        for run in range(runs)
        for name, method in methods.items()
    )
    try:
        for job, reached in executor.each(trainer, jobs):
            if isinstance(reached, Reached):
                if job.name not in result.failures:
                    result.runs.setdefault(job.name, {})[job.run] = reached
                if job.run not in result.runs.setdefault(MAJORITY, {}):
                    baseline = measure_majority(data.y, len(data.class_names), split_masks(data, job.split))
                    result.runs[MAJORITY][job.run] = Reached(baseline)
            else:
                error = reached.error if isinstance(reached, Failed) else reached
                result.runs.pop(job.name, None)
                result.failures.setdefault(job.name, f"run {job.run}: {error}")
                kinds.add(type(error))
                for other in [other for other in jobs if other.name == job.name]:
                    jobs.remove(other)
            if on_run is not None:
                on_run(job.name, job.run)
    except KeyboardInterrupt:
        done = sum(len(finished) for name, finished in result.runs.items() if name != MAJORITY)
        result.runs = {name: _without_gaps(finished) for name, finished in result.runs.items() if 0 in finished}
        raise ComparisonInterrupted(f"interrupted after {done} of {runs * len(methods)} runs", result) from None
    if result.winner is None:
        reasons = "; ".join(f"{name}, {why}" for name, why in result.failures.items())
        same = (kind for kind in (TrainingDiverged, InputError) if all(issubclass(each, kind) for each in kinds))
        raise next(same, GcnslError)(reasons)
    return result


def _without_gaps(runs: dict[int, Reached]) -> dict[int, Reached]:
    """The first runs, up to one that was not finished, so that all methods have some in common."""
    return {run: runs[run] for run in itertools.takewhile(runs.__contains__, itertools.count())}


def _reached(done: Finished) -> Reached:
    fitted = done.fitted
    options = fitted.prepared.method.options()
    return Reached(fitted.measure(done.masks["test"]), fitted.history.seconds, len(fitted.history), options)


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

    ``y`` are class numbers (n), -1 for unknown, and ``masks`` those of the split (n each), by part.
    """
    truth = y[masks["test"]].numpy()
    return measure(class_shares(y[masks["train"]].numpy(), num_classes, len(truth)), truth)


def verdict_on(best: str, leads: Mapping[str, PairedDifference], test_share: float, *, counted: str = "runs") -> str:
    """Say what the best method's leads over all others come to.

    Args:
        best: The name of the best method.
        leads: Its leads over the others, by their names.
        test_share: n_test / n_train; 0 if all runs are on one split, so that noise is what seeds do.
        counted: ``"runs"`` or ``"splits"``, whichever would have to be more to settle what is undecided.
    """
    if not leads:
        return f"{best} has nothing to be compared with."
    if any(math.isnan(lead.mean) for lead in leads.values()):
        return "The metric is not defined on some splits, whose test nodes lack a class: choose another metric."
    if any(math.isnan(lead.p) for lead in leads.values()):
        return f"{best} leads, but a single run can't tell a lead from noise: use more runs."
    of = {verdict: [name for name, lead in leads.items() if lead.verdict == verdict] for verdict in ("clear", "equal")}
    needed = {name: lead.runs_needed(test_share) for name, lead in leads.items() if lead.verdict == "undecided"}
    possible, hopeless = ([name for name in needed if (needed[name] is None) == none] for none in (False, True))

    def with_p(names: Iterable[str]) -> str:
        return _listed(f"{name} (p {p_text(leads[name].p, equals=True)})" for name in names)

    noise = "noise" if test_share else "noise between seeds"
    clear = f"; its lead over {with_p(of['clear'])} is more than {noise}" if of["clear"] else ""
    sentences = [f"{best} leads{clear}."]
    if best == MAJORITY:
        sentences[0] = "No method does better than always guessing the most frequent class."
    if of["equal"]:
        sentences.append(f"{_listed(of['equal'])} {_is(of['equal'])} within a point of it.")
    if possible:
        numbers = _listed(f"{needed[name]:,}" for name in possible)
        unclear = f"{with_p(possible)} {_is(possible)} not distinguishable from it with so few {counted}"
        sentences.append(f"{unclear}; about {numbers} would settle it.")
    if hopeless:
        unclear = f"{with_p(hopeless)} {_is(hopeless)} not distinguishable from it"
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


def _is(names: list[str]) -> str:
    return "is" if len(names) == 1 else "are"


def _listed(texts: Iterable[str]) -> str:
    *first, last = texts
    return " and ".join(filter(None, (", ".join(first), last)))
