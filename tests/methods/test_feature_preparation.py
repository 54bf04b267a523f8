import copy

import pytest
import torch

from gcnsl.datasets import load
from gcnsl.graph import from_arrays
from gcnsl.methods import METHODS, prepare
from gcnsl.methods.feature_preparation import FeaturePreparation, depends_on_split, standardizes

from .cases import CPU, small_graph, with_features

CONFIG = METHODS["mlp"].config
ALWAYS, NEVER = (CONFIG.changed(standardize=choice) for choice in ("always", "never"))


def table(seed: int = 0) -> torch.Tensor:
    """A quantity, a 0/1 column, a constant and a column that is mostly zero (30 × 4)."""
    generator = torch.Generator().manual_seed(seed)
    income = 1e4 + 5e3 * torch.rand(30, generator=generator)
    member = (torch.rand(30, generator=generator) < 0.5).float()
    gain = torch.where(torch.arange(30) < 3, 9e4, 0.0)
    return torch.stack([income, member, torch.full((30,), 7.0), gain], dim=1)


def test_quantities_get_mean_zero_and_variance_one_over_the_training_nodes() -> None:
    graph, rows = with_features(small_graph(), table()), torch.arange(30) < 20
    x = FeaturePreparation.fit(CONFIG, graph, rows).of(graph)
    for column in (0, 3):
        assert float(x[rows, column].mean()) == pytest.approx(0, abs=1e-5)
        assert float(x[rows, column].std(correction=0)) == pytest.approx(1, abs=1e-5)
    assert x[:, 1].equal(graph.x[:, 1])
    assert x[:, 2].abs().max() == 0


@pytest.mark.parametrize(
    ("config", "x", "expected"),
    [
        (CONFIG, table(), "4, 3 of them standardised"),
        (CONFIG, table()[:, :1], "1, standardised"),
        (NEVER, table(), "4, rows sum to 1"),
        (NEVER.changed(feature_norm="l2"), table(), "4, rows have length 1"),
        (NEVER.changed(feature_norm="none"), table(), "4, as they are"),
        (NEVER, torch.empty(30, 0), "34 structural ones, as the nodes have none, rows sum to 1"),
    ],
)
def test_what_was_done_is_said(config, x, expected) -> None:
    graph = with_features(small_graph(), x)
    assert FeaturePreparation.fit(config, graph, None).in_words(graph) == expected


def test_other_nodes_do_not_count() -> None:
    rows = torch.arange(30) < 20
    changed = table()
    changed[20:, 0] *= 50
    first, second = (
        FeaturePreparation.fit(CONFIG, with_features(small_graph(), x), rows).state() for x in (table(), changed)
    )
    assert first["mean"].equal(second["mean"])
    assert first["scale"].equal(second["scale"])


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        (table(), True),
        (table()[:, 1:2], False),
        (table()[:, 3:], False),
        (-table()[:, :1], True),
        (table().to_sparse_csr(), False),
    ],
    ids=["quantities", "0/1", "mostly zero", "negative", "sparse"],
)
def test_what_is_standardised_by_default(x, expected) -> None:
    assert standardizes(CONFIG, x) is expected
    assert standardizes(NEVER, x) is False
    assert standardizes(ALWAYS, x) is (x.layout == torch.strided)
    assert depends_on_split(CONFIG, with_features(small_graph(), x)) is expected


def test_structural_features_alone_do_not_depend_on_the_split() -> None:
    graph = with_features(small_graph(), torch.empty(30, 0))
    assert depends_on_split(CONFIG, graph)
    assert not depends_on_split(NEVER, graph)


def test_the_state_restores_it() -> None:
    graph = with_features(small_graph(), table())
    made = FeaturePreparation.fit(CONFIG, graph, torch.arange(30) < 20)
    assert FeaturePreparation.from_state(CONFIG, made.state(), graph).of(graph).equal(made.of(graph))


@pytest.mark.parametrize("name", [name for name in METHODS if name != "geom-gcn"])
def test_a_graph_without_features_gets_structural_ones(name) -> None:
    data = small_graph()
    data.x = torch.empty(30, 0)
    ready = prepare(METHODS[name], data, seed=0, device=CPU)
    assert ready.inputs[0].shape == (30, 34)
    ready.build()(*ready.inputs)
    grown = from_arrays(torch.empty(31, 0), torch.cat([data.edge_index, torch.tensor([[30, 0], [0, 30]])], dim=1))
    inputs, _ = ready.grown_inputs(grown)
    assert inputs[0].shape == (31, 34)
    again = prepare(METHODS[name], copy.copy(data), seed=0, device=CPU, state=ready.state())
    assert again.inputs[0].equal(ready.inputs[0])


@pytest.mark.parametrize("name", ["cora", "citeseer", "pubmed", "chameleon", "squirrel", "texas", "actor", "debian"])
def test_words_are_left_alone_as_in_the_committed_runs(name, data_root) -> None:
    assert not standardizes(CONFIG, load(name, root=data_root).x)
