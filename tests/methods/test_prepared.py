import copy

import pytest
import torch

from gcnsl import InputError
from gcnsl.graph import from_arrays
from gcnsl.methods import METHODS, prepare
from gcnsl.nn import normalized_adjacency

from .cases import CPU, prepared, small_graph, weighted_graph


@pytest.mark.parametrize("norm", ["none", "row", "l2"])
def test_features_are_normalised_once_and_the_graph_stays(norm) -> None:
    data = small_graph()
    before = data.x.clone()
    method = METHODS["mlp"].with_options(feature_norm=norm, standardize="never")
    ready = prepare(method, data, seed=0, device=CPU)
    size = {"none": None, "row": before.abs().sum(1), "l2": before.norm(dim=1)}[norm]
    torch.testing.assert_close(ready.inputs[0], before if size is None else before / size[:, None])
    assert data.x.equal(before)
    assert ready.graph is data


def test_the_seed_of_preparation_chooses_the_shifted_feature() -> None:
    graph, shifted = small_graph(), {"feature_shift": 9.0}
    columns = {int(prepared("gcn-sl-cc", shifted, graph, seed=seed).inputs[0][0].argmax()) for seed in range(9)}
    assert len(columns) > 1


def test_the_same_graph_needs_no_new_inputs() -> None:
    ready = prepared("gcn-sl-cc", {}, small_graph())
    inputs, options = ready.grown_inputs(copy.copy(ready.graph))
    assert inputs is ready.inputs
    assert options == {}


def test_only_some_models_are_told_which_nodes_are_known() -> None:
    data = small_graph()
    grown = from_arrays(torch.cat([data.x, data.x[:1]]), data.edge_index)
    for name, expected in (("gcn-sl-cc", {"known": 30}), ("gcn", {})):
        inputs, options = prepared(name, {}, data).grown_inputs(grown)
        assert options == expected
        assert all(len(value) == 31 for value in inputs)


def test_other_edges_among_the_same_nodes_are_read() -> None:
    data = small_graph()
    ready = prepared("gcn", {}, data)
    fewer = from_arrays(data.x, data.edge_index[:, :10])
    (_, adjacency), _ = ready.grown_inputs(fewer)
    assert len(adjacency.values) < len(ready.inputs[1].values)


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
