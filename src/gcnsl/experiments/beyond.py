"""Beyond the paper: all methods with equal budgets, on its graphs and others, and GCN-SL+ without each of its parts.

A method's hyper-parameters on a graph are found by a search with so many trials, judged by validation nodes of the
first :data:`SEARCH_SPLITS` splits. Every search begins with the method's defaults, never with settings that were
published for the graph, and variants of GCN-SL+ have searches of their own. The runs that follow are ordinary ones.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from gcnsl.datasets.benchmarks import BENCHMARKS, GEOM_GCN_RUNS
from gcnsl.experiments import paper
from gcnsl.experiments.records import RunResult, RunSpec, as_options
from gcnsl.methods import Method, resolve

SEARCH_SPLITS = 2
TRIALS = 16
"""The default number of trials of every search."""


class Place(NamedTuple):
    """A graph with its usual kind of split, with or without directions, and the metric that is usual on it."""

    dataset: str
    split: str
    directed: bool = False
    metric: str = "accuracy"

    @property
    def column(self) -> str:
        """The name of its column in the table."""
        metric = "" if self.metric == "accuracy" else self.metric.upper()
        return ", ".join(filter(None, (self.dataset, "directed" if self.directed else "", metric)))


WIKIPEDIA = (Place("chameleon", "geom-gcn", directed=True), Place("squirrel", "geom-gcn", directed=True))
FILTERED = (Place("chameleon-filtered", "stored", directed=True), Place("squirrel-filtered", "stored", directed=True))
"""The same without duplicates, in the same order."""
PLACES = (
    *WIKIPEDIA,
    *FILTERED,
    *(Place(name, "geom-gcn") for name in (*paper.DATASETS, "actor")),
    Place("minesweeper", "stored", metric="roc-auc"),
    Place("debian", "random"),
)

WHOLE = "gcn-sl-plus"


class Part(NamedTuple):
    """A part of GCN-SL+: the options that take it away, what is said of a row without it, and its name in claims."""

    without: Mapping[str, Any]
    label: str
    name: str = ""


PARTS = {
    f"{WHOLE} -neighbours": Part(
        {"neighbours_heads": 0}, "without the head on neighbours", "The learned graph on neighbours"
    ),
    f"{WHOLE} -contrast": Part({"contrast": 0.0}, "without the contrastive term", "The contrastive term"),
    f"{WHOLE} -structure": Part({"structure_branch": False}, "without the structure branch", "The structure branch"),
    f"{WHOLE} -links": Part({"neighbours_heads": 0, "structure_branch": False}, "without head and branch"),
    f"{WHOLE} -directions": Part({"direction": "undirected"}, "without directions", "Keeping directions"),
}
"""Rows of GCN-SL+ without some of its parts."""
OTHERS = (*FILTERED, Place("cora", "geom-gcn"))
"""Where GCN-SL+ is run without its parts, besides :data:`WIKIPEDIA`."""
AS_RUN = {"boosted-trees": {"labels": False, "trees": 200}}
"""Options that are not the defaults: what the methods did when the runs were made, with version 0.2.0."""


def places_of(dataset: str) -> list[Place]:
    """The columns of a graph; one that is not among :data:`PLACES` has its published split, if any, or random ones."""
    known = [place for place in PLACES if place.dataset == dataset]
    published = [split for split in BENCHMARKS[dataset].splits if split != "public"] if dataset in BENCHMARKS else []
    return known or [Place(dataset, [*published, "random"][0])]


def rows_of(method: str, place: Place) -> dict[str, Mapping[str, Any]]:
    """The method, and GCN-SL+ without each of its parts on this graph, with the options that take them away."""
    parts = PARTS if method == WHOLE and place in (*WIKIPEDIA, *OTHERS) else {}
    without = {row: part.without for row, part in parts.items() if place.directed or "direction" not in part.without}
    return {method: AS_RUN.get(method, {}), **without}


def search_spec(name: str, place: Place, *, seed: int, trials: int, **fixed: Any) -> RunSpec:
    """The search for a method's hyper-parameters on a graph, these ones fixed.

    A method that uses no directions is searched and run without them, so that it is run once for both columns.
    """
    method = resolve(name, options=fixed, metric=None if place.metric == "accuracy" else place.metric)
    options = as_options(method.options() | {"search_trials": trials, "search_splits": SEARCH_SPLITS})
    directed = place.directed and "directions" in method.config.uses
    return RunSpec(
        method.name, place.dataset, place.split, 0, seed, options, "search", directed=directed, metric=place.metric
    )


def searched_method(spec: RunSpec) -> Method:
    """The method that a search begins with; what is not at its default is not searched for."""
    return resolve(spec.method, options={name: value for name, value in spec.options if not name.startswith("search_")})


def runs_after(search: RunResult, runs: int) -> tuple[RunSpec, ...]:
    """At most so many runs with the hyper-parameters that a search has found; none if it has failed."""
    if search.status == "failed":
        return ()
    options = as_options(searched_method(search.spec).with_options(**search.metrics["options"]).options())
    runs = runs if search.spec.split == "random" else min(runs, GEOM_GCN_RUNS)
    return tuple(replace(search.spec, task="train", run=run, options=options) for run in range(runs))
