import numpy as np
import pytest
import torch

from gcnsl.datasets import load
from gcnsl.graph import column_report
from gcnsl.graph.column_report import are_codes, some_edges

N, VALUES = 1000, 80


def joined(values, share) -> np.ndarray:
    """Edges between random nodes, kept with a probability that depends on the values of both ends."""
    random = np.random.default_rng(1)
    ends = random.integers(0, len(values), (2, 40_000))
    return ends[:, random.random(ends.shape[1]) < share(*values[ends])]


def like_codes(first, second):
    return np.where(first == second, 1.0, 0.05)


def like_quantities(first, second):
    return np.exp(-np.abs(first - second) / 10)


@pytest.fixture(params=range(5))
def values(request) -> np.ndarray:
    return np.random.default_rng(request.param).integers(1, VALUES + 1, N).astype(np.float32)


@pytest.mark.parametrize(("share", "expected"), [(like_codes, True), (like_quantities, False)])
def test_edges_tell_codes_from_quantities(values, share, expected) -> None:
    assert are_codes(values, joined(values, share)) is expected


def test_edges_that_have_nothing_to_do_with_the_values_never_tell_of_codes(values) -> None:
    assert not are_codes(values, joined(values, lambda first, second: np.full(first.shape, 0.1)))


def test_new_names_of_the_values_turn_a_quantity_into_codes(values) -> None:
    edges = joined(values, lambda a, b: like_quantities(a, b) ** 4)
    assert are_codes(values, edges) is False
    names = np.random.default_rng(7).permutation(VALUES).astype(np.float32) + 1
    assert are_codes(names[values.astype(int) - 1], edges) is True


@pytest.mark.parametrize("unknown", [0.0, np.nan])
def test_nodes_without_a_value_do_not_count(values, unknown) -> None:
    edges = joined(values, like_quantities)
    some = np.where(np.arange(N) % 3 == 0, unknown, values + 2000)
    assert are_codes(some, edges) is False


def test_few_values_or_edges_tell_nothing(values) -> None:
    few = values % 5 + 1
    assert are_codes(few, joined(few, like_codes)) is None
    assert are_codes(values, np.empty((2, 0), dtype=np.int64)) is None


@pytest.mark.parametrize(
    ("column", "expected"), [("major", True), ("dorm", True), ("school", True), ("year", False), ("status", None)]
)
def test_columns_of_facebook100(data_root, column, expected) -> None:
    people = load("facebook100-reed98", split=None, root=data_root)
    own = [k for k, name in enumerate(people.feature_names) if name.startswith(f"{column}_")]
    codes = np.array([float(people.feature_names[k].rpartition("_")[2]) for k in own])
    values = codes[people.x.to_dense()[:, own].argmax(dim=1).numpy()]
    assert are_codes(values, some_edges(people.edge_index)) is expected


def test_edges_are_drawn_once_each_and_without_loops(monkeypatch) -> None:
    once = torch.tensor([[0, 0, 1, 2], [1, 2, 3, 4]])
    both = torch.cat([once, once.flip(0), torch.tensor([[3], [3]])], dim=1)
    assert some_edges(both).tolist() == once.tolist()
    monkeypatch.setattr(column_report, "MOST_EDGES", 3)
    drawn = {tuple(ends) for ends in some_edges(both).T.tolist()}
    assert len(drawn) == 3
    assert drawn < {tuple(ends) for ends in once.T.tolist()}
