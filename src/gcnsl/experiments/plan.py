"""Which runs make which table or figure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

from gcnsl.datasets.splits import GEOM_GCN_RUNS
from gcnsl.datasets.synthetic import synthetic_name
from gcnsl.errors import InputError
from gcnsl.experiments import paper
from gcnsl.experiments.graphs import check_graph, splits_of
from gcnsl.experiments.hyperparameters import Folder, options_for
from gcnsl.experiments.spec import RunSpec, as_options
from gcnsl.methods import ALIASES, find_method

COMPARED = ("mlp", "gcn", "gat", "geom-gcn", "mixhop", "h2gcn-1", "h2gcn-2", "nlgnn", "gcn-sl-cc", "gcn-sl-av")
"""The methods that are compared, in the order of the paper's table."""
MERGES = ("gcn-sl-cc", "gcn-sl-av")
DEPTHS = (3, 4, 5)
DEPTH_EPOCHS = 500
"""Epochs of the curves over depth, without early stopping: over-fitting is what they are to show."""
HOMOPHILIES = tuple(tenth / 10 for tenth in range(11))
TIMINGS = 3
"""How often the spectral features are timed at most."""
SPECTRAL_METHODS = ("sc", "esc", "esc-anch")

Unit = Literal["%", "s", "h", "n"]
"""Accuracy, seconds, homophily, number of neighbours."""


@dataclass(frozen=True)
class Cell:
    """One number of a table, and the runs whose mean it is.

    Attributes:
        row: What is measured: a method, a variant of one.
        column: On which graph.
        split: On which kind of split.
        metric: Which of the runs' numbers.
        runs: The runs.
        paper: What the paper prints there.
        unit: Of the number, if it is not the experiment's.
    """

    row: str
    column: str
    split: str
    metric: str
    runs: tuple[RunSpec, ...]
    paper: paper.Number | None = None
    unit: Unit | None = None


@dataclass(frozen=True)
class Experiment:
    """A table or figure of the paper, or one beyond it.

    Attributes:
        name: One of :data:`EXPERIMENTS`.
        title: In a few words.
        unit: Of its numbers.
        cells: In the order of the table.
        paper_hparams: Whether GCN-SL has the paper's own hyper-parameters in it.
    """

    name: str
    title: str
    unit: Unit
    cells: tuple[Cell, ...]
    paper_hparams: bool = False

    @property
    def specs(self) -> list[RunSpec]:
        """Its runs, each once."""
        return list(dict.fromkeys(spec for cell in self.cells for spec in cell.runs))


@dataclass(frozen=True)
class Scope:
    """How much of the experiments to plan.

    Args:
        methods: Of :data:`COMPARED`, or aliases; all if ``None``.
        datasets: The paper's eight graphs if ``None``.
        splits: ``None`` for those that an experiment asks for.
        runs: Runs a cell.
        seed: See :class:`gcnsl.experiments.spec.RunSpec`.
        paper_hparams: Whether GCN-SL has the paper's own hyper-parameters, where there are some.
        settings: Folder with settings files, if not the package's own.
    """

    methods: Sequence[str] | None = None
    datasets: Sequence[str] | None = None
    splits: Sequence[str] | None = None
    runs: int = 10
    seed: int = paper.SEED
    paper_hparams: bool = False
    settings: Folder = None

    def __post_init__(self) -> None:
        if self.runs < 1:
            raise InputError(f"runs({self.runs}) must be >= 1")
        for method in self.methods or ():
            find_method(method)
        for dataset, split in product(self.datasets or (), self.splits or (None,)):
            check_graph(dataset, split)
        for split in self.splits or ():
            check_graph("cora", split)
        if "geom-gcn" in (self.splits or ()) and self.runs > GEOM_GCN_RUNS:
            raise InputError(f"runs({self.runs}) must be <= {GEOM_GCN_RUNS}: there are no more geom-gcn splits")

    @property
    def compared(self) -> list[str]:
        """The methods that are asked for, in the order of the paper's table, others after them."""
        asked = COMPARED if self.methods is None else [ALIASES.get(name, name) for name in self.methods]
        return sorted(
            dict.fromkeys(asked), key=lambda name: COMPARED.index(name) if name in COMPARED else len(COMPARED)
        )

    def of(self, *methods: str) -> list[str]:
        """Those of these methods that are asked for."""
        return [name for name in methods if name in self.compared]

    def places(self, *splits: str, datasets: Sequence[str] | None = None) -> Iterator[tuple[str, str]]:
        """Each kind of split with each graph that has it."""
        for split, dataset in product(self.splits or splits, datasets or self.datasets or paper.DATASETS):
            if split in splits_of(dataset):
                yield split, dataset

    def run_specs(
        self, method: str, dataset: str, split: str, *, curves: bool = False, **options: Any
    ) -> tuple[RunSpec, ...]:
        """The runs of a method on a graph, with these options changed."""
        usual = options_for(method, dataset, paper_hparams=self.paper_hparams, folder=self.settings)
        full = as_options(find_method(method).with_options(**(usual | options)).options())
        runs = min(self.runs, GEOM_GCN_RUNS) if split == "geom-gcn" else self.runs
        return tuple(RunSpec(method, dataset, split, run, self.seed, full, curves=curves) for run in range(runs))


def _accuracy(scope: Scope) -> Iterator[Cell]:
    for (split, dataset), method in product(scope.places("random", "geom-gcn"), scope.compared):
        printed = paper.ACCURACY.get(method, {}).get(dataset)
        yield Cell(method, dataset, split, "test", scope.run_specs(method, dataset, split), printed)


def ablation_row(method: str, adjacency: bool, reconnected: bool) -> str:
    """The name of a row of the ablation: the method with A, A*, both or neither."""
    return f"{method} {('neither', 'A*', 'A', 'A+A*')[2 * adjacency + reconnected]}"


def _ablation(scope: Scope) -> Iterator[Cell]:
    for (split, dataset), method in product(scope.places("random"), scope.of(*MERGES)):
        for adjacency, reconnected in product((False, True), repeat=2):
            runs = scope.run_specs(method, dataset, split, use_adjacency=adjacency, use_reconnected=reconnected)
            printed = paper.ABLATION.get((method, adjacency, reconnected), {}).get(dataset)
            yield Cell(ablation_row(method, adjacency, reconnected), dataset, split, "test", runs, printed)


def _spectral(scope: Scope) -> Iterator[Cell]:
    for (split, dataset), method in product(scope.places("random"), scope.of(*MERGES)):
        with_features = scope.run_specs(method, dataset, split)
        printed = paper.ACCURACY[method].get(dataset)
        yield Cell(f"{method} with F", dataset, split, "test", with_features, printed)
        without = scope.run_specs(method, dataset, split, n_components=0)
        yield Cell(f"{method} without F", dataset, split, "test", without)


def _homophily(scope: Scope) -> Iterator[Cell]:
    rows = {
        "gcn-sl-cc": {
            "homophily_original": "original",
            "homophily_initial": "initial A*",
            "homophily": "gcn-sl-cc A*",
            "degree": "gcn-sl-cc degree",
        },
        "nlgnn": {"homophily": "nlgnn"},
    }
    for (split, dataset), method in product(scope.places("random"), scope.of(*rows)):
        learns = {"use_reconnected": True} if method in MERGES else {}
        runs = scope.run_specs(method, dataset, split, **learns)
        for metric, row in rows[method].items():
            printed = paper.DATASETS.get(dataset) if row == "original" else None
            number = printed and paper.Number(printed.homophily)
            yield Cell(row, dataset, split, metric, runs, number, unit="n" if metric == "degree" else None)


def _depth(scope: Scope) -> Iterator[Cell]:
    steady = {"epochs": DEPTH_EPOCHS, "patience": DEPTH_EPOCHS}
    for (split, dataset), method in product(scope.places("random", datasets=("cora",)), scope.of("gcn", "gcn-sl-cc")):
        for depth in DEPTHS:
            deep = {"num_layers": depth} if method == "gcn" else {"rounds": depth}
            runs = scope.run_specs(method, dataset, split, curves=True, **steady, **deep)
            yield Cell(f"{method}-{depth}", dataset, split, "test", runs)


def _synthetic(scope: Scope) -> Iterator[Cell]:
    graphs = [synthetic_name(h) for h in HOMOPHILIES]
    for (split, dataset), method in product(scope.places("random", datasets=graphs), scope.compared):
        yield Cell(method, dataset, split, "test", scope.run_specs(method, dataset, split))


def _runtime(scope: Scope) -> Iterator[Cell]:
    for dataset, method in product(scope.datasets or paper.DATASETS, SPECTRAL_METHODS):
        usual = options_for("gcn-sl-cc", dataset, paper_hparams=True)
        options = as_options({name: usual[name] for name in ("n_anchors", "n_components")})
        runs = tuple(
            RunSpec(method, dataset, "none", run, scope.seed, options, task="features")
            for run in range(min(scope.runs, TIMINGS))
        )
        yield Cell(method, dataset, "none", "seconds", runs, paper.RUNTIME[method].get(dataset))


EXPERIMENTS: dict[str, tuple[str, Unit, Callable[[Scope], Iterator[Cell]]]] = {
    "accuracy": ("Test accuracy of all methods", "%", _accuracy),
    "ablation": ("GCN-SL with and without A and A*", "%", _ablation),
    "spectral": ("GCN-SL with and without spectral features F", "%", _spectral),
    "homophily": ("Homophily of the original, initial and learned graphs", "h", _homophily),
    "depth": ("GCN and GCN-SL of growing depth", "%", _depth),
    "runtime": ("Seconds for the spectral features, in one thread", "s", _runtime),
    "synthetic": ("Test accuracy over homophily, on synthetic graphs", "%", _synthetic),
}


def plan(name: str, scope: Scope | None = None) -> Experiment:
    """An experiment by name, as much of it as the scope asks for."""
    if name not in EXPERIMENTS:
        raise InputError(f"experiment({name!r}) must be one of {', '.join(EXPERIMENTS)}")
    scope = scope or Scope()
    title, unit, cells = EXPERIMENTS[name]
    return Experiment(name, title, unit, tuple(cells(scope)), scope.paper_hparams)
