"""Which runs each table or figure is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Literal

from gcnsl.checks import check_choice, check_seed, check_whole
from gcnsl.datasets import NAMES, is_known
from gcnsl.datasets.benchmarks import BENCHMARKS, GEOM_GCN_RUNS, synthetic_name
from gcnsl.errors import ArgumentError
from gcnsl.experiments import beyond, paper
from gcnsl.experiments.records import RunResult, RunSpec, as_options
from gcnsl.methods import ALIASES, METHODS, Method, find_method, resolve
from gcnsl.nn.config import Folder

COMPARED = ("mlp", "gcn", "gat", "geom-gcn", "mixhop", "h2gcn-1", "h2gcn-2", "nlgnn", "gcn-sl-cc", "gcn-sl-av")
"""The methods that are compared, in the order of the paper's table."""
MERGES = ("gcn-sl-cc", "gcn-sl-av")
"""GCN-SL with either way to merge X and F."""
DEPTHS = (3, 4, 5)
DEPTH_EPOCHS = 500
"""Epochs of the curves over depth; there is no early stopping, because the curves are to show over-fitting."""
CURVE_STEP = 2
"""Curves keep every second epoch: they look the same and take half the space."""
_SYNTHETIC = [synthetic_name(tenth / 10) for tenth in range(11)]
TIMINGS = 3
"""At most this many runs time the spectral features."""
SPECTRAL_METHODS = ("sc", "esc", "esc-anch")

Unit = Literal["%", "s", "h", "n"]
"""Accuracy in percent, seconds, homophily, number of neighbours."""


@dataclass(frozen=True)
class PlannedCell:
    """One number of a table: a metric's mean over some runs, and what the paper prints.

    The row is a method or a variant of one, the column a graph. The unit is ``None`` for that of the experiment. If
    hyper-parameters are to be found by a ``search``, there are no runs until it is done.
    """

    row: str
    column: str
    split: str
    metric: str
    runs: tuple[RunSpec, ...]
    paper: paper.Number | None = None
    unit: Unit | None = None
    search: RunSpec | None = None

    @property
    def specs(self) -> tuple[RunSpec, ...]:
        """The search, if there is one, and the runs."""
        return (*([self.search] if self.search else []), *self.runs)


@dataclass(frozen=True)
class Experiment:
    """A table or figure of the paper, or one beyond it; GCN-SL has our or the paper's own hyper-parameters."""

    name: str
    title: str
    unit: Unit
    cells: tuple[PlannedCell, ...]
    paper_hparams: bool = False

    @property
    def specs(self) -> list[RunSpec]:
        """All searches and runs, without duplicates."""
        return specs_of([self])

    def first_runs(self, count: int) -> Experiment:
        """The same experiment with at most this many runs per cell."""
        return replace(self, cells=tuple(replace(cell, runs=cell.runs[:count]) for cell in self.cells))


@dataclass(frozen=True)
class Scope:
    """How much of the experiments to plan; ``None`` for all methods, the paper's graphs and each experiment's splits.

    With ``paper_hparams``, GCN-SL has the paper's own hyper-parameters on the paper's graphs. Files in the folder
    ``settings`` go before the published settings. The experiment ``beyond`` takes neither: it gives each method so many
    ``trials``, and plans the runs that follow from the searches among the ``results`` (by key).
    """

    methods: Sequence[str] | None = None
    datasets: Sequence[str] | None = None
    splits: Sequence[str] | None = None
    runs: int = 10
    seed: int = paper.SEED
    paper_hparams: bool = False
    settings: Folder = None
    trials: int = beyond.TRIALS
    results: Mapping[str, RunResult] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_whole("runs", self.runs, least=1)
        check_seed(self.seed)
        check_whole("trials", self.trials, least=1)
        if self.settings is not None and not Path(self.settings).is_dir():
            raise ArgumentError("settings", str(self.settings), "must be a folder with files such as texas.toml")
        for method in self.methods or ():
            find_method(method)
        for dataset in self.datasets or ():
            if not is_known(dataset):
                choices = f"{', '.join(NAMES)}, or synthetic-hH with H from 0 to 1"
                raise ArgumentError("datasets", dataset, f"must be one of {choices}")
        for split, dataset in product(self.splits or (), self.datasets or paper.DATASETS):
            if split not in splits_of(dataset):
                raise ArgumentError(
                    "splits", split, f"does not exist for {dataset}: use {' or '.join(splits_of(dataset))}"
                )
        if "geom-gcn" in (self.splits or ()):
            check_whole("runs", self.runs, least=1, most=GEOM_GCN_RUNS, why="there are no more geom-gcn splits")

    def chosen(self, usual: Iterable[str] = COMPARED) -> list[str]:
        """The scope's methods, or else these, in the order of the paper's table, followed by all others."""
        chosen = usual if self.methods is None else [ALIASES.get(name, name) for name in self.methods]
        return sorted(dict.fromkeys(chosen), key=[*COMPARED, *METHODS].index)

    def among(self, *methods: str) -> list[str]:
        """Those of these methods that are chosen."""
        return [name for name in methods if name in self.chosen()]

    def places(self, *splits: str, datasets: Sequence[str] | None = None) -> Iterator[tuple[str, str]]:
        """Each kind of split with each graph that has it; the scope's choice goes before these splits."""
        for split, dataset in product(self.splits or splits, datasets or self.datasets or paper.DATASETS):
            if split in splits_of(dataset):
                yield split, dataset

    def method(self, name: str, dataset: str) -> Method:
        """A method with the hyper-parameters that it has on a graph."""
        if self.paper_hparams and name in MERGES and dataset in paper.DATASETS:
            return resolve(name, options=paper.hyperparameters(dataset))
        return resolve(name, benchmark=dataset, settings=self.settings)

    def run_specs(
        self, name: str, dataset: str, split: str, *, curves: bool = False, **changes: Any
    ) -> tuple[RunSpec, ...]:
        """The runs of a method on a graph, with these hyper-parameters changed."""
        options = as_options(self.method(name, dataset).with_options(**changes).options())
        runs = self.runs if split == "random" else min(self.runs, GEOM_GCN_RUNS)
        return tuple(RunSpec(name, dataset, split, run, self.seed, options, curves=curves) for run in range(runs))


def splits_of(dataset: str) -> tuple[str, ...]:
    """The kinds of split that a graph has and that allow several runs."""
    published = BENCHMARKS[dataset].splits if dataset in BENCHMARKS else ()
    return ("random", *(split for split in published if split != "public"))


def _accuracy(scope: Scope, datasets: Sequence[str] | None = None) -> Iterator[PlannedCell]:
    for (split, dataset), method in product(scope.places("random", "geom-gcn", datasets=datasets), scope.chosen()):
        printed = paper.ACCURACY.get(method, {}).get(dataset)
        yield PlannedCell(method, dataset, split, "test", scope.run_specs(method, dataset, split), printed)


def _ablation(scope: Scope) -> Iterator[PlannedCell]:
    variants = {"neither": (False, False), "A*": (False, True), "A": (True, False), "A+A*": (True, True)}
    for (split, dataset), method in product(scope.places("random"), scope.among(*MERGES)):
        for variant, (adjacency, reconnected) in variants.items():
            runs = scope.run_specs(method, dataset, split, use_adjacency=adjacency, use_reconnected=reconnected)
            row = f"{method} {variant}"
            yield PlannedCell(row, dataset, split, "test", runs, paper.ABLATION.get(row, {}).get(dataset))


def _spectral(scope: Scope) -> Iterator[PlannedCell]:
    for (split, dataset), method in product(scope.places("random"), scope.among(*MERGES)):
        printed = paper.ACCURACY[method].get(dataset)
        runs = scope.run_specs(method, dataset, split)
        yield PlannedCell(f"{method} with F", dataset, split, "test", runs, printed)
        runs = scope.run_specs(method, dataset, split, use_spectral=False)
        yield PlannedCell(f"{method} without F", dataset, split, "test", runs)


def _homophily(scope: Scope) -> Iterator[PlannedCell]:
    graphs = {"homophily_original": "original", "homophily_initial": "initial A*", "homophily": "gcn-sl-cc A*"}
    of_all = {**graphs, "degree": "gcn-sl-cc degree"}
    of_featured = {f"{metric}_featured": f"{row}, featured" for metric, row in of_all.items()}
    rows = {"gcn-sl-cc": of_all | of_featured, "nlgnn": {"homophily": "nlgnn"}}
    for (split, dataset), method in product(scope.places("random"), scope.among(*rows)):
        learns = {"use_reconnected": True} if method in MERGES else {}
        runs = scope.run_specs(method, dataset, split, **learns)
        for metric, row in rows[method].items():
            printed = paper.DATASETS.get(dataset) if row == "original" else None
            number = printed and paper.Number(printed.homophily)
            yield PlannedCell(row, dataset, split, metric, runs, number, unit="n" if "degree" in metric else None)


def _depth(scope: Scope) -> Iterator[PlannedCell]:
    steady = {"epochs": DEPTH_EPOCHS, "patience": DEPTH_EPOCHS}
    places = scope.places("random", datasets=("cora",))
    for (split, dataset), method in product(places, scope.among("gcn", "gcn-sl-cc")):
        for depth in DEPTHS:
            deep = {"num_layers": depth} if method == "gcn" else {"rounds": depth}
            runs = scope.run_specs(method, dataset, split, curves=True, **steady, **deep)
            yield PlannedCell(f"{method}-{depth}", dataset, split, "test", runs)


def _runtime(scope: Scope) -> Iterator[PlannedCell]:
    as_printed = replace(scope, paper_hparams=True)
    for dataset, method in product(scope.datasets or paper.DATASETS, SPECTRAL_METHODS):
        hyperparameters = as_printed.method("gcn-sl-cc", dataset).options()
        options = as_options({name: hyperparameters[name] for name in ("n_anchors", "n_components")})
        runs = tuple(
            RunSpec(method, dataset, "none", run, scope.seed, options, task="features")
            for run in range(min(scope.runs, TIMINGS))
        )
        yield PlannedCell(method, dataset, "none", "seconds", runs, paper.RUNTIME[method].get(dataset))


def _beyond(scope: Scope) -> Iterator[PlannedCell]:
    datasets = dict.fromkeys(scope.datasets or (place.dataset for place in beyond.PLACES))
    places = [place for dataset in datasets for place in beyond.places_of(dataset)]
    for place, method in product(places, scope.chosen(METHODS)):
        if scope.splits is not None and place.split not in scope.splits:
            continue
        for row, fixed in {method: {}, **dict(beyond.parts_of(method, place))}.items():
            search = beyond.search_spec(method, place, seed=scope.seed, trials=scope.trials, **fixed)
            found = scope.results.get(search.key)
            runs = beyond.runs_after(found, scope.runs) if found else ()
            yield PlannedCell(row, place.column, "usual", search.test_score, runs, search=search)


EXPERIMENTS: dict[str, tuple[str, Unit, Callable[[Scope], Iterator[PlannedCell]]]] = {
    "accuracy": ("Test accuracy of all methods", "%", _accuracy),
    "ablation": ("GCN-SL with and without A and A*", "%", _ablation),
    "spectral": ("GCN-SL with and without spectral features F", "%", _spectral),
    "homophily": ("Homophily of the original, initial and learned graphs", "h", _homophily),
    "depth": ("GCN and GCN-SL of growing depth", "%", _depth),
    "runtime": ("Seconds for the spectral features, in one thread", "s", _runtime),
    "synthetic": ("Test accuracy over homophily, on synthetic graphs", "%", partial(_accuracy, datasets=_SYNTHETIC)),
    "beyond": ("All methods with equal budgets, beyond the paper", "%", _beyond),
}
OF_PAPER = tuple(name for name in EXPERIMENTS if name != "beyond")
"""What is run if nothing is named: ``beyond`` takes many times as long as all others."""
ON_ANY_GRAPH = tuple(name for name in OF_PAPER if name not in ("depth", "synthetic"))
"""What is run if nothing but graphs is named: the others have graphs of their own."""


def plan(name: str, scope: Scope | None = None) -> Experiment:
    """Plan an experiment, or as much of it as the scope asks for."""
    scope = scope or Scope()
    title, unit, cells = EXPERIMENTS[check_choice("experiment", name, EXPERIMENTS)]
    return Experiment(name, title, unit, tuple(cells(scope)), scope.paper_hparams)


def specs_of(experiments: Iterable[Experiment]) -> list[RunSpec]:
    """All searches and runs of these experiments, without duplicates."""
    cells = (cell for experiment in experiments for cell in experiment.cells)
    return list(dict.fromkeys(spec for cell in cells for spec in cell.specs))
