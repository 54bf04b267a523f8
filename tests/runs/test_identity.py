import datetime
import decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch

from gcnsl import from_arrays, from_tables
from gcnsl.runs.jobs import graph_digest, identity

EDGES = np.array([[0, 1, 2, 3], [1, 2, 3, 4]])
X = np.arange(15.0).reshape(5, 3)


def graph(x=X, **options):
    return from_arrays(x, **{"edge_index": EDGES, "y": [0, 1, 0, 1, 0], "class_names": ["a", "b"]} | options)


def test_the_same_graph_has_the_same_digest() -> None:
    assert graph_digest(graph()) == graph_digest(graph(X.copy()))
    assert graph_digest(graph()) == graph_digest(graph(y=[1, 1, 0, 1, 0])), "labels are given apart"


@pytest.mark.parametrize(
    "other",
    [
        graph(X + 1),
        graph(X[:, :2]),
        graph(None),
        graph(edge_index=EDGES[:, :3]),
        graph(edge_index=EDGES[::-1], directed=True),
        graph(edge_index=EDGES, directed=True),
        graph(edge_weight=[1, 2, 3, 4]),
        graph(edge_weight=[1, 2, 3, 5]),
        graph(class_names=["a", "c"]),
    ],
)
def test_whatever_a_method_may_read_makes_another_digest(other) -> None:
    assert graph_digest(other) != graph_digest(graph())


def test_features_may_be_sparse_or_missing() -> None:
    sparse = graph(torch.from_numpy(X).float().to_sparse_csr())
    assert graph_digest(sparse) == graph_digest(graph(torch.from_numpy(X).float().to_sparse_csr()))
    assert graph_digest(graph(None)) == graph_digest(graph(np.empty((5, 0))))


COLUMNS = {
    "text": ["x", None, "é", "x", "y"],
    "number": [1.5, None, 2.5, 1.5, 0.0],
    "date": [datetime.date(1066, 10, 14), None, datetime.date(2020, 1, 1), None, None],
    "zoned": pd.date_range("2020-01-01", periods=5, tz="Europe/Paris"),
    "decimal": [decimal.Decimal("1.5"), None, decimal.Decimal("2.25"), None, None],
    "flag": [True, False, None, True, False],
    "category": pd.Categorical(["u", "v", None, "u", "u"]),
}


def table(*, arrow: bool = False, **changes):
    nodes = pd.DataFrame({"id": range(5), **COLUMNS, **changes, "label": list("abaab")})
    edges = pd.DataFrame(EDGES.T, columns=["source", "target"])
    return from_tables(pa.Table.from_pandas(nodes) if arrow else nodes, edges)


@pytest.mark.parametrize("arrow", [False, True])
def test_columns_of_a_table_count_as_they_were_read(arrow) -> None:
    whole = graph_digest(table(arrow=arrow))
    assert graph_digest(table(arrow=arrow)) == whole
    others = [{name: list(values)[::-1]} for name, values in COLUMNS.items()]
    found = {graph_digest(table(**other)) for other in others}
    assert len(found) == len(COLUMNS), "though a rare level, for example, changes no feature"
    assert whole not in found


def test_a_table_without_columns_has_a_digest() -> None:
    nodes, edges = pd.DataFrame({"id": range(5), "label": list("abaab")}), pd.DataFrame({"source": [0], "target": [1]})
    assert graph_digest(from_tables(nodes, edges)) == graph_digest(from_tables(nodes, edges))
    kept = nodes.assign(constant="x")
    assert graph_digest(from_tables(kept, edges)) == graph_digest(from_tables(kept, edges))


def test_facts_parts_and_the_version_make_other_identities(monkeypatch) -> None:
    data, masks = graph(), {"train": torch.arange(5) < 3}
    facts = {"method": "gcn", "options": {"lr": 0.01, "hops": (1, 2)}, "seed": 0, "class_weight": None}
    one = identity(data, masks, **facts)
    assert one == identity(data, {"train": torch.arange(5) < 3}, **dict(reversed(facts.items())))
    others = [
        identity(data, {"train": torch.arange(5) < 4}, **facts),
        identity(data, {"val": torch.arange(5) < 3}, **facts),
        identity(data, masks, **facts | {"options": {"lr": 0.02, "hops": (1, 2)}}),
        identity(data, masks, **facts | {"seed": 1}),
        identity(data, masks, **facts | {"metric": "accuracy"}),
    ]
    monkeypatch.setattr("gcnsl.runs.jobs.__version__", "9.9")
    others.append(identity(data, masks, **facts))
    assert len({one, *others}) == 7
