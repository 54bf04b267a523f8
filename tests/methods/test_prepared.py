import copy

import pytest
import torch

from gcnsl import InputError
from gcnsl.graph import from_arrays
from gcnsl.methods import METHODS, prepare
from gcnsl.methods.prepared import FeaturePreparation, depends_on_split, standardizes
from gcnsl.nn import normalized_adjacency

from .cases import CPU, prepared, small_graph, weighted_graph, with_features

CONFIG = METHODS["mlp"].config
ALWAYS, NEVER = (CONFIG.changed(standardize=choice) for choice in ("always", "never"))


def test_only_some_models_are_told_which_nodes_are_known() -> None:
    data = small_graph()
    grown = from_arrays(torch.cat([data.x, data.x[:1]]), data.edge_index)
    for name, expected in (("gcn-sl-cc", {"known": 30}), ("gcn", {})):
        inputs, options = prepared(name, {}, data).grown_inputs(grown)
        assert options == expected
        assert all(len(value) == 31 for value in inputs)


@pytest.mark.parametrize("name", ["gcn", "h2gcn-1"])
def test_other_weights_are_read_by_those_that_use_weights(name) -> None:
    data = weighted_graph()
    ready = prepared(name, {}, data)
    assert ready.grown_inputs(copy.copy(data))[0] is ready.inputs
    other = from_arrays(data.x, data.arc_index, directed=True, edge_weight=data.arc_weight + 1)
    (_, adjacency, *_), _ = ready.grown_inputs(other)
    if name == "gcn":
        expected = normalized_adjacency(other.edge_index, 30, weight=other.edge_weight / data.edge_weight.mean())
        torch.testing.assert_close(adjacency.values, expected.values)
        assert "weight_unit" not in other
    else:
        assert adjacency is ready.inputs[1]


def test_a_grown_graph_needs_the_weights_that_training_used_and_no_others() -> None:
    weighted, plain = weighted_graph(), small_graph()
    with pytest.raises(
        InputError, match="gcn was trained with the edges' weights, which the grown graph does not have"
    ):
        prepared("gcn", {}, weighted).grown_inputs(plain)
    undirected = from_arrays(weighted.x, weighted.arc_index, edge_weight=weighted.arc_weight)
    ready = prepared("gcn", {}, weighted)
    assert ready.grown_inputs(undirected)[0] is ready.inputs, "gcn does not use directions"
    for name, graph in (("gcn", plain), ("mlp", weighted), ("geom-gcn", weighted)):
        ready = prepared(name, {}, graph)
        for same in (weighted, plain) if name != "gcn" else (weighted,):
            assert ready.grown_inputs(same)[0] is ready.inputs, "what was not used is left out"


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


@pytest.mark.parametrize("name", ["gcn", "gcn-sl-cc", "gcn-sl-plus", "twins"])
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
