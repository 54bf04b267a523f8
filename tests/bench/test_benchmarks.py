"""What benchmarks compute of what they have measured; their figures are of other machines and days."""

import itertools

import numpy as np
import pytest
import torch
from bench.false_leads import TEST_SHARE, equal_methods, false_leads, is_said_to_lead
from bench.own_graphs import means_of, table_of

from bench import edge_choice, scale
from gcnsl.nn import reconnect_conv
from gcnsl.nn.reconnect_conv import SimilarityHead
from gcnsl.training import TrainingSettings


@pytest.mark.parametrize("test_share", [0.0, TEST_SHARE])
@pytest.mark.parametrize("methods", [2, 4, 10])
def test_one_of_several_equal_methods_seldom_leads(methods, test_share) -> None:
    said, uncorrected = false_leads(methods, 5, test_share, simulations=400)
    assert said <= 0.05 + 2 * (0.05 * 0.95 / 400) ** 0.5
    if methods == 10:
        assert uncorrected > 0.2, "so that the simulation would notice"


def test_a_method_that_is_better_is_still_said_to_lead() -> None:
    rng, found = np.random.default_rng(0), []
    for _ in range(50):
        comparison = equal_methods(5, 10, TEST_SHARE, rng)
        for reached in comparison.runs["method 0"].values():
            reached.scores["accuracy"] += 0.2
        found.append(is_said_to_lead(comparison))
    assert sum(found) > 40


def test_auto_is_compared_with_the_best_reference() -> None:
    split = {"logistic": {"accuracy": 0.5}, "PyG GCN": {"accuracy": 0.75}, "auto": {"accuracy": 0.7}}
    results = {"one": {"0": split}, "without auto": {"0": {"logistic": {"accuracy": 0.5}}}}
    *_, line = table_of(results).splitlines()
    assert line == "| one (1) | 50.0 | – | – | 75.0 | – | – | 70.0 | -5.0 |"
    assert means_of([{"accuracy": 0.5, "roc-auc": 0.7}, {"accuracy": 0.7}]) == pytest.approx({"accuracy": 60.0})


def test_the_mean_of_epochs_counts_evaluations_as_often_as_they_occur() -> None:
    steps = [9.0, 1.0, 1.5, 1.0, 2.0, 4.0]  # epochs 5 and 6, the last one, are evaluated
    ends = list(itertools.accumulate(steps))
    settings = TrainingSettings(epochs=6)
    assert scale.mean_epoch(ends, settings.for_nodes(10**6)) == pytest.approx((4 * 1.0 + 3.0) / 5)
    assert scale.mean_epoch(ends, settings.for_nodes(100)) == pytest.approx(1.5)


@pytest.mark.parametrize("name", edge_choice.VARIANTS)
def test_variants_change_the_edges_and_nothing_afterwards(name) -> None:
    torch.manual_seed(0)
    head, x, h = SimilarityHead(5, 4, mean_degree=3, epsilon=0.5), torch.randn(60, 5), torch.randn(60, 2)
    before = (SimilarityHead.forward, reconnect_conv.epsilon_for_degree, reconnect_conv.reconnect_at_any_size)
    usual = head(x, h)
    with edge_choice.variant(name) as options:
        changed = head(x, h)
    assert torch.equal(changed, usual) == (name in ("mean degree", "two heads"))
    assert options == ({"neighbours_heads": 2} if name == "two heads" else {})
    assert before == (SimilarityHead.forward, reconnect_conv.epsilon_for_degree, reconnect_conv.reconnect_at_any_size)
