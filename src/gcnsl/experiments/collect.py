"""Fill the tables of all experiments from a collection of results, and judge the paper's claims by them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gcnsl.datasets import NAMES
from gcnsl.datasets.benchmarks import GEOM_GCN_RUNS
from gcnsl.experiments import paper
from gcnsl.experiments.beyond import PLACES
from gcnsl.experiments.claims import Claim, judge
from gcnsl.experiments.plan import MERGES, OF_PAPER, Experiment, Scope, plan, splits_of
from gcnsl.experiments.result_store import RunResult, by_key
from gcnsl.experiments.result_tables import Table, make_tables
from gcnsl.experiments.spec import RunSpec
from gcnsl.methods import METHODS
from gcnsl.nn.config import Folder


@dataclass(frozen=True)
class Findings:
    """All results, tables of them and what they say of the paper's claims, and results that no table shows."""

    results: tuple[RunResult, ...]
    tables: tuple[Table, ...]
    claims: tuple[Claim, ...]
    unused: tuple[RunResult, ...]


def collect(results: Sequence[RunResult], *, seed: int = paper.SEED, settings: Folder = None) -> Findings:
    """Fill every table that there are results for, with the usual or the paper's own settings and this seed.

    Files in the folder ``settings`` go before the published settings.
    """
    keyed = by_key(results)
    beyond = list(_beyond(keyed, seed=seed))
    shown = {spec.key for experiment in beyond for spec in experiment.specs}
    scopes = _scopes([keyed[key].spec for key in keyed if key not in shown], seed=seed, settings=settings)
    experiments = [*_experiments(keyed.keys(), scopes), *beyond]
    tables = [table for experiment in experiments for table in make_tables(experiment, keyed)]
    used = {spec.key for experiment in experiments for spec in experiment.specs}
    unused = tuple(result for key, result in keyed.items() if key not in used)
    return Findings(tuple(results), tuple(tables), tuple(judge(tables)), unused)


def _scopes(specs: Sequence[RunSpec], *, seed: int, settings: Folder) -> list[Scope]:
    """The scopes to show, wide enough for all of these runs.

    These are the usual and the paper's own hyper-parameters, each on the splits that an experiment asks for, then both
    again on Geom-GCN's splits.
    """
    graphs = {spec.dataset for spec in specs} & set(NAMES)
    methods = sorted({spec.method for spec in specs} & METHODS.keys())
    datasets = [*(name for name in paper.DATASETS if name in graphs), *sorted(graphs - paper.DATASETS.keys())]
    runs = max((spec.run for spec in specs), default=0) + 1
    usual = Scope(methods=methods, datasets=datasets, runs=runs, seed=seed, settings=settings)
    printed = replace(usual, methods=[name for name in methods if name in MERGES], paper_hparams=True)
    published = [name for name in datasets if "geom-gcn" in splits_of(name)]
    other: Any = {"splits": ["geom-gcn"], "datasets": published, "runs": min(runs, GEOM_GCN_RUNS)}
    return [usual, printed, replace(usual, **other), replace(printed, **other)]


def _experiments(finished: Collection[str], scopes: Sequence[Scope]) -> Iterator[Experiment]:
    """The experiments to show, each with as many runs per cell as there are results of.

    In a scope an experiment is shown if it has finished runs that none of the scopes before it has. On splits that the
    experiment does not ask for itself, these must be runs that no experiment before it shows either: otherwise the runs
    of the accuracy table alone would make an ablation with a single row on Geom-GCN's splits.
    """
    shown_before: set[str] = set()
    for name in OF_PAPER:
        shown: set[str] = set()
        for scope in scopes:
            experiment = plan(name, scope)
            known = shown | shown_before if scope.splits else shown
            new = [spec for spec in experiment.specs if spec.key in finished and spec.key not in known]
            if new:
                shown.update(spec.key for spec in new)
                yield experiment.first_runs(max(spec.run for spec in new) + 1)
        shown_before |= shown


def _beyond(results: Mapping[str, RunResult], *, seed: int) -> Iterator[Experiment]:
    """The experiment beyond the paper, if any of it was run; with all of its cells, to show what is missing."""
    searches = [result.spec for result in results.values() if result.spec.task == "search"]
    if searches:
        datasets = list(dict.fromkeys([*(place.dataset for place in PLACES), *(spec.dataset for spec in searches)]))
        trials = max(dict(spec.options)["search_trials"] for spec in searches)
        runs = max(result.spec.run for result in results.values()) + 1
        experiment = plan("beyond", Scope(datasets=datasets, runs=runs, seed=seed, trials=trials, results=results))
        done = [spec.run for spec in experiment.specs if spec.key in results]
        yield experiment.first_runs(max(done, default=0) + 1)
