"""The specification and the result of a run, and the file of results."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import chain
from typing import Any, Literal, get_args

from gcnsl.methods import METHODS
from gcnsl.methods.registry import renamed
from gcnsl.runs.results import Record, read_records

Task = Literal["train", "features", "search"]
Status = Literal["ok", "failed"]
Options = tuple[tuple[str, Any], ...]
LATER_OPTIONS = {
    "class_weight": None,
    "standardize": "auto",
    "use_spectral": True,
    "drop_features": True,
    "labels": False,
    "residual": False,
    "norm": "none",
}
"""Options that were introduced after runs had been committed, and what these did. All other options that a stored run
does not name have their default."""


@dataclass(frozen=True)
class RunSpec:
    """The specification of a run; equal specifications give equal results on the same machine.

    The task is to train and test a method; or to time the computation of its spectral features, ``"sc"``, ``"esc"`` or
    ``"esc-anch"``, with the split ``"none"``; or to search for the method's hyper-parameters on the first splits
    (the options ``search_splits`` and ``search_trials`` say how), beginning with these options. The seed is that of the
    splits, the anchors, the shifted feature and the search. With ``curves``, the accuracies over the epochs are stored.
    ``directed`` keeps the directions of edges, and ``metric`` is what the method is judged by.
    """

    method: str
    dataset: str
    split: str
    run: int
    seed: int
    options: Options
    task: Task = "train"
    curves: bool = False
    directed: bool = False
    metric: str = "accuracy"

    @property
    def group(self) -> RunSpec:
        """The specification of run 0, which is the same for all runs that differ in their number only."""
        return replace(self, run=0)

    @property
    def train_seed(self) -> int:
        """The seed of this run's weights and dropout."""
        return self.seed + self.run

    @property
    def test_score(self) -> str:
        """What the metric on test nodes is called among a result's metrics; ``"test"`` is the accuracy."""
        return "test" if self.metric == "accuracy" else f"test_{self.metric.replace('-', '_')}"


def as_options(options: Mapping[str, Any]) -> Options:
    """Options as a specification stores them: sorted, and with tuples where JSON and TOML have lists."""
    plain = {name: tuple(value) if isinstance(value, list) else value for name, value in options.items()}
    return tuple(sorted(plain.items()))


@dataclass(frozen=True)
class RunResult:
    """The result of a run; times are in UTC (ISO 8601), and errors in one line.

    Among the metrics are the accuracies ``train``, ``val`` and ``test``, ``train_nodes``, ``test_nodes``, ``epochs``,
    ``best_epoch`` and ``homophily``; those of a search are ``validation``, ``trials`` and the ``options`` that it has
    found. The seconds are without preparing the graph, the hash is the beginning of the SHA-256 of the run's three
    masks, and the history has curves if the specification asks for them.
    """

    spec: RunSpec
    status: Status
    metrics: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    device: str = ""
    version: str = ""
    split_hash: str = ""
    error: str = ""
    history: dict[str, list[float]] = field(default_factory=dict)
    finished: str = ""

    def to_record(self) -> Record:
        """Plain values for a line of a file; what is empty is left out."""
        own = {name: value for name, value in asdict(self).items() if name != "spec" and (value or value == 0)}
        return asdict(self.spec) | {"options": dict(self.spec.options)} | own


def read_results(path: str | os.PathLike[str]) -> list[RunResult]:
    """All results in a file, in its order; none if there is no file."""
    return [*chain(*read_records(path, results_of))]


def results_of(record: Record) -> list[RunResult]:
    """The results in a line of a file: one, or several ``runs`` that differ in their number, as in results.jsonl."""
    common = dict(record)
    return [_result_of({**common, **run}) for run in common.pop("runs", [{}])]


def _result_of(plain: Record) -> RunResult:
    own = {each.name: plain.pop(each.name) for each in fields(RunResult) if each.name in plain}
    name, options = plain["method"], plain["options"]
    if name in METHODS and plain.get("task") != "features":
        defaults = METHODS[name].options()
        options = defaults | {each: LATER_OPTIONS[each] for each in LATER_OPTIONS.keys() & defaults} | renamed(options)
    result = RunResult(spec=RunSpec(**{**plain, "options": as_options(options)}), **own)
    if result.status not in get_args(Status) or result.spec.task not in get_args(Task):
        raise ValueError(f"status is {result.status!r}, task is {result.spec.task!r}")
    hash(result.spec)  # options within options have none
    return result


def by_spec(results: Iterable[RunResult]) -> dict[RunSpec, RunResult]:
    """Results by their specification: the first good one or, if there is none, the last failure."""
    found: dict[RunSpec, RunResult] = {}
    for result in results:
        if result.spec not in found or found[result.spec].status == "failed":
            found[result.spec] = result
    return found


def by_error(results: Iterable[RunResult]) -> dict[str, list[str]]:
    """The errors of failed runs, each with the names of the runs that failed with it."""
    found: dict[str, list[str]] = {}
    for result in results:
        if result.status == "failed":
            spec = result.spec
            which = "search" if spec.task == "search" else f"run {spec.run}"
            found.setdefault(result.error, []).append(f"{spec.method} on {spec.dataset} ({spec.split}, {which})")
    return found
