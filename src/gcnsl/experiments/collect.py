"""From a heap of results to the tables they fill: what a report shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from gcnsl.datasets import NAMES
from gcnsl.datasets.splits import GEOM_GCN_RUNS
from gcnsl.experiments import paper
from gcnsl.experiments.claims import Claim, judge
from gcnsl.experiments.graphs import splits_of
from gcnsl.experiments.hyperparameters import Folder
from gcnsl.experiments.matching import by_key
from gcnsl.experiments.plan import EXPERIMENTS, MERGES, Experiment, Scope, plan
from gcnsl.experiments.results import RunResult
from gcnsl.experiments.tables import Table, make_tables
from gcnsl.methods import METHODS


@dataclass(frozen=True)
class Findings:
    """All that the results say.

    Attributes:
        results: All of them.
        tables: Those that they fill, in the order of the experiments.
        claims: The paper's, judged by these tables.
        unused: Results that belong to no table: of other settings, seeds or methods than the tables are made of.
    """

    results: tuple[RunResult, ...]
    tables: tuple[Table, ...]
    claims: tuple[Claim, ...]
    unused: tuple[RunResult, ...]


def collect(results: Sequence[RunResult], *, seed: int = paper.SEED, settings: Folder = None) -> Findings:
    """Fill every table that there are results for.

    Args:
        results: Of runs with any settings; those that the tables ask for are shown.
        seed: Of the runs to show.
        settings: Folder with settings files, if not the package's own.
    """
    keyed = by_key(results)
    experiments = list(_experiments(keyed, seed=seed, settings=settings))
    tables = [table for experiment in experiments for table in make_tables(experiment, keyed)]
    used = {spec.key for experiment in experiments for spec in experiment.specs}
    unused = tuple(result for key, result in keyed.items() if key not in used)
    return Findings(tuple(results), tuple(tables), tuple(judge(tables)), unused)


def _experiments(results: Mapping[str, RunResult], *, seed: int, settings: Folder) -> Iterator[Experiment]:
    """The experiments that there are results for, with as many runs as there are.

    On splits that an experiment does not ask for by itself it is shown if there are runs that only it has.
    """
    specs = [result.spec for result in results.values()]
    graphs = {spec.dataset for spec in specs} & set(NAMES)
    usual = Scope(
        methods=sorted({spec.method for spec in specs} & METHODS.keys()),
        datasets=[*(name for name in paper.DATASETS if name in graphs), *sorted(graphs - paper.DATASETS.keys())],
        runs=max((spec.run for spec in specs), default=0) + 1,
        seed=seed,
        settings=settings,
    )
    printed = replace(usual, paper_hparams=True, methods=[name for name in usual.methods or () if name in MERGES])
    published = [name for name in usual.datasets or () if "geom-gcn" in splits_of(name)]
    elsewhere = [
        replace(scope, splits=["geom-gcn"], datasets=published, runs=min(scope.runs, GEOM_GCN_RUNS))
        for scope in (usual, printed)
    ]
    shown: set[str] = set()
    for name in EXPERIMENTS:
        known: set[str] = set()
        for scope in (usual, printed, *elsewhere):
            old = known | shown if scope.splits else known
            seen = [spec for spec in plan(name, scope).specs if spec.key in results and spec.key not in old]
            known |= {spec.key for spec in seen}
            if seen:
                yield plan(name, replace(scope, runs=max(spec.run for spec in seen) + 1))
        shown |= known
