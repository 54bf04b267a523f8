"""Sixty chains, which together have every kind of column with every family of methods, and every other kind once.

Fourteen quick ones have every kind of column with every family, too. ``bench/hostile/chains.py`` runs thousands, drawn
at random.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import cycle, islice

import numpy as np
import pandas as pd
import pytest

from gcnsl.methods import METHODS

from .chain import FAMILIES, Chain, Outcome, make_chain, run_chain
from .graphs import AMOUNTS, COLUMNS, EDGES, IDS, LABELS, MEMORY, NAMES, SHAPES, SPLITS, TABLES, grow, make_graph

PER_FAMILY, QUICK_PER_FAMILY = 9, 2
ARRAYS = ("networkx", "networkx", "scipy", "scipy", "pyg", "pyg")


def covering_chains(per_family: int, *, first: int = 0) -> Iterator[Chain]:
    """So many chains for each family, which share all kinds of columns among them, and some for arrays."""
    columns = [*COLUMNS, "wide"]
    others = {
        "size": ("tiny", "tiny", "small"),
        "container": (*TABLES, "pandas", "arrow"),
        "ids": tuple(IDS),
        "labels": tuple(LABELS),
        "names": tuple(NAMES),
        "shape": SHAPES,
        "amount": AMOUNTS,
        "split": SPLITS,
        "edges": ("", *EDGES),
    }
    kinds = {respect: cycle(values) for respect, values in others.items()}
    for number, methods in enumerate(FAMILIES.values()):
        for part, method in zip(range(per_family), cycle(methods), strict=False):
            own = {respect: next(values) for respect, values in kinds.items()}
            own["columns"] = "|".join(columns[(part + number) % per_family :: per_family])
            yield make_chain(first + 100 * number + part, method=method, **own)
        own = {
            "size": next(kinds["size"]),
            "container": ARRAYS[number],
            "columns": ("sparse", "number|0 and 1")[number % 2],
        }
        if per_family == PER_FAMILY or number in (0, 3):
            yield make_chain(first + 1000 + number, method=methods[-1], **own)


CHAINS, QUICK = list(covering_chains(PER_FAMILY)), list(covering_chains(QUICK_PER_FAMILY, first=2000))


@pytest.fixture(scope="module")
def outcomes(request) -> Iterator[dict[int, Future[Outcome]]]:
    """The chains that are asked for, two at a time; their steps are processes."""
    items = [item for item in request.session.items if item.module is request.module]
    chosen = [item.callspec.params["chain"] for item in items if "outcomes" in item.fixturenames]
    with ThreadPoolExecutor(2) as pool:
        yield {chain.seed: pool.submit(run_chain, chain) for chain in chosen}


@pytest.mark.parametrize(
    "chain",
    [*QUICK, *(pytest.param(chain, marks=pytest.mark.slow) for chain in CHAINS)],
    ids=lambda chain: f"{chain.seed}-{chain.method}-{chain.kinds['container']}",
)
def test_a_valid_graph_goes_all_the_way(outcomes, chain: Chain) -> None:
    assert outcomes[chain.seed].result().failures == []


def test_the_chains_cover_every_kind() -> None:
    assert (len(CHAINS), len(QUICK)) == (60, 14)
    for chains in (CHAINS, QUICK):
        pairs = {(kind, chain.kinds["family"]) for chain in chains for kind in chain.kinds["columns"].split("|")}
        assert {(kind, family) for kind in (*COLUMNS, "wide") for family in FAMILIES} <= pairs
    met = {
        respect: {kind for chain in CHAINS for kind in chain.kinds[respect].split("|")} for respect in CHAINS[0].kinds
    }
    assert met["method"] == {method for methods in FAMILIES.values() for method in methods} == {"auto", *METHODS}
    assert met["container"] == {*TABLES, *MEMORY}
    assert (met["ids"], met["labels"], met["names"]) == (set(IDS), set(LABELS), set(NAMES))
    assert met["shape"] | met["amount"] | met["split"] | met["edges"] >= {*SHAPES, *AMOUNTS, *SPLITS, *EDGES}


@pytest.mark.parametrize("seed", range(4))
def test_a_seed_is_a_graph_and_its_truth_is_that_of_its_tables(seed: int) -> None:
    graph, again = make_graph(seed), make_graph(seed)
    pd.testing.assert_frame_equal(graph.nodes, again.nodes)
    pd.testing.assert_frame_equal(graph.edges, again.edges)
    for each in (graph, grow(graph), grow(graph, more=False)):
        assert each.nodes[each.options.get("id", "id")].tolist() == each.ids
        assert len(set(each.ids)) == len(each.ids)
        ends = [(each.ids[a], each.ids[b]) for a, b in islice(each.ends, 50)]
        assert list(islice(zip(*(each.edges[name] for name in each.edges.columns[:2]), strict=True), 50)) == ends
    sizes = np.array(sorted(graph.classes.values()))
    assert len(sizes) >= 2
    assert sizes[-2] >= 6
