"""What holds for every method: written once, tested with all of them."""

import copy
import json
from dataclasses import fields

import pytest
import torch
from torch.nn.functional import cross_entropy

from gcnsl import InputError
from gcnsl.graph import from_arrays
from gcnsl.methods import METHODS, initial_model, prepare
from gcnsl.options import NONE, read_assignments
from gcnsl.training import seeded
from tests.nn.cases import drawn

from .cases import (
    CPU,
    EVERY,
    NETWORKS,
    easy_graph,
    fitted,
    method,
    prepared,
    renumbered_model,
    same_weights,
    small_graph,
    weighted_graph,
    with_features,
    with_weights,
)

every_method = pytest.mark.parametrize("name", METHODS)
every_network = pytest.mark.parametrize("name", NETWORKS)
every_variant = pytest.mark.parametrize(("name", "options"), EVERY, ids=str)
every_variant_of_networks = pytest.mark.parametrize(
    ("name", "options"), [(name, options) for name, options in EVERY if name in NETWORKS], ids=str
)
STAYS = ("geom-gcn",)
"""Methods that can't take new nodes."""
QUICK = {"epochs": 6}


@every_network
def test_weights_of_classes_count_like_repeated_nodes(name) -> None:
    data = easy_graph()
    ready = prepared(name, {"epochs": 1, "class_weight": {"0": 3, "2": 2}}, data)
    model = initial_model(ready, 0).train()
    with seeded(0):
        logits = model(*ready.inputs)
    nodes = [i for i in data.train_mask[:, 0].nonzero().flatten().tolist() for _ in range((3, 1, 2)[data.y[i]])]
    expected = cross_entropy(logits[nodes], data.y[nodes]).item()
    assert fitted(ready).history["train_loss"] == pytest.approx([expected], rel=1e-5)


@every_variant_of_networks
def test_gradients_reach_every_parameter(name, options) -> None:
    data = small_graph()
    ready = prepared(name, options, data)
    model = drawn(ready.build())
    logits = model(*ready.inputs)
    assert logits.shape == (30, 3)
    cross_entropy(logits, data.y).backward()
    for label, parameter in model.named_parameters():
        assert parameter.grad is not None, label
        assert parameter.grad.abs().sum() > 0, label


@every_method
def test_sparse_features_count_like_dense_ones(name) -> None:
    data, options = small_graph(), {"standardize": "never"}
    ready, sparse = (prepared(name, options, with_features(data, x)) for x in (data.x, data.x.to_sparse_csr()))
    model = with_weights(ready)
    torch.testing.assert_close(model(*sparse.inputs), model(*ready.inputs), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("weighted", [False, True], ids=["edges", "weighted arcs"])
@every_variant
def test_nodes_may_be_renumbered(name, options, weighted) -> None:
    data, options = small_graph(), {"standardize": "never"} | options  # else NLGNN's scores have ties
    order = torch.randperm(30, generator=torch.Generator().manual_seed(0))
    place, edges = torch.argsort(order), {"edge_index": data.edge_index}
    if weighted:
        data = weighted_graph()
        edges = {"edge_index": data.arc_index, "edge_weight": data.arc_weight, "directed": True}
    other = from_arrays(data.x[order], y=data.y[order], **edges | {"edge_index": place[edges["edge_index"]]})
    ready, reordered = (prepared(name, options, graph) for graph in (data, other))
    model = with_weights(ready)
    other_model = renumbered_model(model, order) if name in NETWORKS else with_weights(reordered)
    tolerance = 1e-4 if name in NETWORKS else 1e-2  # iterations end elsewhere
    logits = other_model(*reordered.inputs)
    torch.testing.assert_close(logits, model(*ready.inputs)[order], rtol=tolerance, atol=tolerance)


@every_method
def test_weights_and_directions_count_exactly_for_those_that_use_them(name) -> None:
    plain, reverse = small_graph(), weighted_graph(reverse=True)
    scaled, uses = weighted_graph(scale=1000), METHODS[name].config.uses
    ready, weighted, *others = (prepared(name, {}, graph) for graph in (plain, weighted_graph(), reverse, scaled))
    model = with_weights(weighted)
    logits, reversed_, same = (model(*each.inputs) for each in (weighted, *others))
    without = with_weights(ready)(*ready.inputs)
    assert logits.equal(without) == (not uses)
    assert logits.equal(reversed_) == ("directions" not in uses)
    assert METHODS[name].unused(reverse) == [fact for fact in ("directions", "weights") if fact not in uses]
    assert METHODS[name].unused(plain) == []
    torch.testing.assert_close(same, logits, rtol=1e-4, atol=1e-4)


@every_network
def test_dropout_is_for_training_only(name) -> None:
    ready = prepared(name, {"dropout": 0.5}, small_graph(), width=16)
    model = ready.build()
    assert not model(*ready.inputs).equal(model(*ready.inputs))
    model.eval()
    assert model(*ready.inputs).equal(model(*ready.inputs))


@every_method
def test_the_seed_decides_every_bit(name) -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    data = easy_graph()
    first, again = (fitted(prepared(name, QUICK, data), seed=3) for _ in range(2))
    assert first.history.values == again.history.values
    assert same_weights(first.model, again.model)
    if name in NETWORKS:
        other = fitted(first.prepared, seed=4)
        assert not same_weights(first.model, other.model)
        assert first.history.values != other.history.values
    assert torch.get_rng_state().equal(before), "the caller's generator is left alone"


@every_network
def test_weights_may_be_drawn_again(name) -> None:
    ready = prepared(name, {}, small_graph())
    model, other = initial_model(ready, 7), initial_model(ready, 8)
    assert not same_weights(model, other)
    torch.manual_seed(7)
    other.reset_parameters()
    torch.manual_seed(7)
    model.reset_parameters()
    assert same_weights(model, other)


@pytest.mark.parametrize("name", [name for name in METHODS if name not in NETWORKS])
def test_labels_weigh_in_models_that_are_fitted(name) -> None:
    ready, heavy = (prepared(name, {"class_weight": weight}, easy_graph()) for weight in (None, {"2": 5}))
    before, after = (fitted(each).logits().softmax(dim=1)[:, 2].mean() for each in (ready, heavy))
    assert after > before


@every_method
def test_it_learns(name) -> None:
    enough = {"epochs": 80, "patience": 80}
    result = fitted(prepared(name, enough, easy_graph(), width=16))
    accuracy = result.accuracy({"test": result.prepared.graph.test_mask[:, 0]})["test"]
    assert accuracy > (0.45 if name == "twins" else 0.6), "chance is a third"
    if name in NETWORKS:
        assert min(result.history["train_loss"]) < 0.8 * result.history["train_loss"][0]


@every_method
def test_test_labels_decide_nothing(name) -> None:
    data = easy_graph()
    test = data.test_mask[:, 0]
    blind, absent = copy.copy(data), copy.copy(data)
    blind.y, absent.y = torch.where(test, (data.y + 1) % 3, data.y), torch.where(test, -1, data.y)
    seen, *others = (fitted(prepared(name, QUICK, graph)) for graph in (data, blind, absent))
    watched = fitted(seen.prepared, watch={"test": test})
    for other in others:
        assert same_weights(seen.model, other.model)
        assert seen.history.values == other.history.values
    assert same_weights(seen.model, watched.model)
    assert len(watched.history["test_accuracy"]) == len(watched.history)


@every_method
def test_inputs_and_model_are_on_the_device(name) -> None:
    ready = prepare(method(name, {}), small_graph(), seed=0, device=torch.device("meta"))
    assert {value.device.type for value in ready.inputs} == {"meta"}
    assert {value.device.type for value in ready.build().state_dict().values()} == {"meta"}
    assert prepared(name, {}, small_graph()).inputs[0].device == CPU


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@every_method
def test_a_gpu_gives_what_a_cpu_gives(name) -> None:
    ready = prepared(name, {}, small_graph())
    moved = prepare(ready.method, ready.graph, seed=0, device=torch.device("cuda"))
    model = with_weights(ready)
    expected = model(*ready.inputs)
    torch.testing.assert_close(model.cuda()(*moved.inputs).cpu(), expected, rtol=1e-3, atol=1e-3)


@every_variant
def test_new_nodes_are_classified_or_refused_with_a_remedy(name, options) -> None:
    data = easy_graph()
    result = fitted(prepared(name, {**options, "epochs": 3}, data))
    before = result.logits()
    assert result.grown_logits(copy.copy(data)).equal(before)

    x = torch.cat([data.x, data.x[:3] + 0.5])
    joined = from_arrays(
        x, torch.cat([data.edge_index, torch.tensor([[120, 121], [5, 120]])], dim=1), data.y.tolist() + [-1] * 3
    )
    if name in STAYS:
        with pytest.raises(
            InputError, match=f"^{name} can't take new nodes.*train it again on the grown graph"
        ) as said:
            result.grown_logits(joined)
        assert "\n" not in str(said.value)
        return
    logits = result.grown_logits(joined)
    assert logits.shape == (123, 3)
    assert logits.isfinite().all()
    if name != "nlgnn":  # there a new node can come between two others that were next to each other
        apart = from_arrays(x, data.edge_index, data.y.tolist() + [-1] * 3)
        torch.testing.assert_close(result.grown_logits(apart)[:120], before, rtol=1e-4, atol=1e-4)


@every_method
def test_a_graph_without_edges_or_features_to_speak_of_is_no_error(name) -> None:
    nothing = torch.empty(2, 0, dtype=torch.long)
    for x in (torch.rand(6, 1, generator=torch.Generator().manual_seed(0)), torch.zeros(6, 2)):
        ready = prepared(name, {}, from_arrays(x, nothing, [0, 1, 2] * 2))
        if name not in NETWORKS:
            assert with_weights(ready)(*ready.inputs).isfinite().all()
            continue
        model = initial_model(ready, 0)
        cross_entropy(model(*ready.inputs), ready.graph.y).backward()
        assert all(parameter.grad.isfinite().all() for parameter in model.parameters() if parameter.grad is not None)
        assert model.eval()(*ready.inputs).isfinite().all()


@every_method
def test_every_option_has_a_meaning_a_range_and_a_default_that_comes_back(name) -> None:
    one = METHODS[name]
    described = one.described()
    assert [option.name for option in described] == list(one.options())
    assert len(described) == len(fields(one.config)) + len(fields(one.training)), "no option means two things"
    for option in described:
        assert option.meaning[0].isupper() and option.meaning.endswith("."), option.name  # noqa: PT018
        assert option.range, option.name
        with pytest.raises(InputError, match=rf"^{option.name}\("):
            one.with_options(**{option.name: object()})
        if option.range.startswith(("number", "whole number")):
            assert ">" in option.range, option.name
            with pytest.raises(InputError, match=rf"^{option.name}\(-1\) must be"):
                one.with_options(**{option.name: -1})
    texts = {key: NONE if value is None else json.dumps(value) for key, value in one.options().items()}
    assert one.with_options(**read_assignments(texts)) == one
