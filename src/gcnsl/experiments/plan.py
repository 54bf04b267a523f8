"""Which runs each table or figure is made of."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from typing import Any

from gcnsl.checks import check_choice, check_seed, check_whole
from gcnsl.datasets import NAMES, is_known
from gcnsl.datasets.benchmarks import BENCHMARKS, GEOM_GCN_RUNS, synthetic_name
from gcnsl.errors import ArgumentError
from gcnsl.experiments import beyond, paper
from gcnsl.experiments.records import RunResult, RunSpec, as_options
from gcnsl.experiments.tables import Cell, Table
from gcnsl.methods import ALIASES, METHODS, Method, find_method, resolve

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


@dataclass(frozen=True)
class Scope:
    """How much of the experiments to plan; ``None`` for all methods, the paper's graphs and each experiment's splits.

    With ``paper_hparams``, GCN-SL has the paper's own hyper-parameters on the paper's graphs. The experiment ``beyond``
    gives each method so many ``trials``, and plans the runs that follow from the searches among the ``results``.
    """

    methods: Sequence[str] | None = None
    datasets: Sequence[str] | None = None
    splits: Sequence[str] | None = None
    runs: int = 10
    seed: int = paper.SEED
    paper_hparams: bool = False
    trials: int = beyond.TRIALS
    results: Mapping[RunSpec, RunResult] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_seed(self.seed)
        check_whole("runs", self.runs, least=1)
        check_whole("trials", self.trials, least=1)
        for method in self.methods or ():
            find_method(method)
        for dataset in self.datasets or ():
            if not is_known(dataset):
                raise ArgumentError("datasets", dataset, f"must be one of {', '.join(NAMES)}, or synthetic-hH")
        for split, dataset in product(self.splits or (), self.datasets or paper.DATASETS):
            if split not in splits_of(dataset):
                others = " or ".join(splits_of(dataset))
                raise ArgumentError("splits", split, f"does not exist for {dataset}: use {others}")
            if split == "geom-gcn":
                check_whole("runs", self.runs, least=1, most=GEOM_GCN_RUNS, why="there are no more geom-gcn splits")

    def chosen(self, usual: Iterable[str] = COMPARED) -> list[str]:
        """The scope's methods, or else these, in the order of the paper's table, followed by all others."""
        chosen = usual if self.methods is None else [ALIASES.get(name, name) for name in self.methods]
        return sorted(dict.fromkeys(chosen), key=[*COMPARED, *METHODS].index)

    def among(self, *methods: str) -> list[str]:
        """The chosen ones of these methods."""
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
        return resolve(name, benchmark=dataset)

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


def _accuracy(scope: Scope, datasets: Sequence[str] | None = None) -> Iterator[Cell]:
    for (split, dataset), method in product(scope.places("random", "geom-gcn", datasets=datasets), scope.chosen()):
        printed = paper.ACCURACY.get(method, {}).get(dataset)
        yield Cell(method, dataset, split, "test", scope.run_specs(method, dataset, split), printed)


def _ablation(scope: Scope) -> Iterator[Cell]:
    variants = {"neither": (False, False), "A*": (False, True), "A": (True, False), "A+A*": (True, True)}
    for (split, dataset), method in product(scope.places("random"), scope.among(*MERGES)):
        for variant, (adjacency, reconnected) in variants.items():
            runs = scope.run_specs(method, dataset, split, use_adjacency=adjacency, use_reconnected=reconnected)
            row = f"{method} {variant}"
            yield Cell(row, dataset, split, "test", runs, paper.ABLATION.get(row, {}).get(dataset))


def _spectral(scope: Scope) -> Iterator[Cell]:
    for (split, dataset), method in product(scope.places("random"), scope.among(*MERGES)):
        runs, printed = scope.run_specs(method, dataset, split), paper.ACCURACY[method].get(dataset)
        yield Cell(f"{method} with F", dataset, split, "test", runs, printed)
        runs = scope.run_specs(method, dataset, split, use_spectral=False)
        yield Cell(f"{method} without F", dataset, split, "test", runs)


def _homophily(scope: Scope) -> Iterator[Cell]:
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
            yield Cell(row, dataset, split, metric, runs, number, "n" if "degree" in metric else "h")


def _depth(scope: Scope) -> Iterator[Cell]:
    steady = {"epochs": DEPTH_EPOCHS, "patience": DEPTH_EPOCHS}
    places = scope.places("random", datasets=("cora",))
    for (split, dataset), method in product(places, scope.among("gcn", "gcn-sl-cc")):
        for depth in DEPTHS:
            deep = {"num_layers": depth} if method == "gcn" else {"rounds": depth}
            runs = scope.run_specs(method, dataset, split, curves=True, **steady, **deep)
            yield Cell(f"{method}-{depth}", dataset, split, "test", runs)


def _runtime(scope: Scope) -> Iterator[Cell]:
    as_printed = replace(scope, paper_hparams=True)
    for dataset, (method, printed) in product(scope.datasets or paper.DATASETS, paper.RUNTIME.items()):
        hyperparameters = as_printed.method("gcn-sl-cc", dataset).options()
        options = as_options({name: hyperparameters[name] for name in ("n_anchors", "n_components")})
        first = RunSpec(method, dataset, "none", 0, scope.seed, options, task="features")
        runs = tuple(replace(first, run=run) for run in range(min(scope.runs, 3)))
        yield Cell(method, dataset, "none", "seconds", runs, printed.get(dataset), "s")


def _beyond(scope: Scope) -> Iterator[Cell]:
    datasets = dict.fromkeys(scope.datasets or (place.dataset for place in beyond.PLACES))
    places = [place for dataset in datasets for place in beyond.places_of(dataset)]
    for place, method in product(places, scope.chosen(METHODS)):
        if scope.splits is not None and place.split not in scope.splits:
            continue
        for row, fixed in beyond.rows_of(method, place).items():
            search = beyond.search_spec(method, place, seed=scope.seed, trials=scope.trials, **fixed)
            found = scope.results.get(search)
            runs = beyond.runs_after(found, scope.runs) if found else ()
            yield Cell(row, place.column, "usual", search.test_score, runs, search=search)


EXPERIMENTS: dict[str, tuple[str, Callable[[Scope], Iterator[Cell]]]] = {
    "accuracy": ("Test accuracy of all methods", _accuracy),
    "ablation": ("GCN-SL with and without A and A*", _ablation),
    "spectral": ("GCN-SL with and without spectral features F", _spectral),
    "homophily": ("Homophily of the original, initial and learned graphs", _homophily),
    "depth": ("GCN and GCN-SL of growing depth", _depth),
    "runtime": ("Seconds for the spectral features, in one thread", _runtime),
    "synthetic": ("Test accuracy over homophily, on synthetic graphs", partial(_accuracy, datasets=_SYNTHETIC)),
    "beyond": ("All methods with equal budgets, beyond the paper", _beyond),
}
OF_PAPER = tuple(name for name in EXPERIMENTS if name != "beyond")
"""What is run if nothing is named: ``beyond`` takes many times as long as all others."""
ON_ANY_GRAPH = tuple(name for name in OF_PAPER if name not in ("depth", "synthetic"))
"""What is run if nothing but graphs is named: the others have graphs of their own."""


def plan(name: str, scope: Scope | None = None) -> list[Table]:
    """Plan an experiment, or as much of it as the scope asks for: a table for each kind of split."""
    scope = scope or Scope()
    heading, planned = EXPERIMENTS[check_choice("experiment", name, EXPERIMENTS)]
    cells: dict[str, dict[tuple[str, str], Cell]] = {}
    for cell in planned(scope):
        cells.setdefault(cell.split, {})[cell.row, cell.column] = cell
    return [Table(name, heading, split, scope.paper_hparams, of_split) for split, of_split in cells.items()]


def specs_of(tables: Iterable[Table]) -> list[RunSpec]:
    """All searches and runs of these tables, without duplicates."""
    return list(dict.fromkeys(spec for table in tables for cell in table.cells.values() for spec in cell.specs))
