"""A scikit-learn user's first hour: the idioms of its documentation on a graph, with tables, arrays and networkx."""

import logging
import sys
from types import ModuleType, SimpleNamespace

import networkx as nx
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
import torch
from sklearn.base import clone, is_classifier
from sklearn.compose import make_column_transformer
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_predict, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import gcnsl
from gcnsl import GCNSLClassifier, InputError, NodeClassifier, SpectralFeatures
from gcnsl.estimator import progress

from .auto.cases import make_quick

N = 60
GRAPH = gcnsl.synthetic(n=N, h=0.9, classes=3, degree=4, features=8, seed=0, signal=0.9)
X, EDGES, TRUTH = GRAPH.x.numpy(), GRAPH.edge_index.numpy(), GRAPH.y.numpy()
NAMES = np.array(["ash", "beech", "cedar"])
IDS = [f"tree {i}" for i in range(N)]
HIDDEN = np.arange(N) % 4 == 3
LABELS = pd.Series(np.where(HIDDEN, None, NAMES[TRUTH]), index=IDS, name="kind")


@pytest.fixture(autouse=True, scope="module")
def one_thread(single_thread):
    """All work here is small."""


def table() -> pd.DataFrame:
    """Columns of all kinds, with gaps, and ids as the index."""
    frame = pd.DataFrame(X[:, :5], columns=list("abcde"), index=IDS)
    rare = pd.Series(np.where(TRUTH == 0, "north", np.where(np.arange(N) % 2, "south", "east")), index=IDS)
    return frame.assign(side=rare.mask(np.arange(N) % 11 == 5), planted=pd.date_range("2001-03-01", periods=N))


def small(method: str = "gcn", **options) -> NodeClassifier:
    return NodeClassifier(method, **({"epochs": 40, "hidden_channels": 8} | options), device="cpu")


def named_edges() -> pd.DataFrame:
    return pd.DataFrame(np.array(IDS)[EDGES].T, columns=["source", "target"])


# Inputs


def given_edges(kind: str):
    numbers = {
        "array": EDGES,
        "list": EDGES.tolist(),
        "torch": torch.from_numpy(EDGES),
        "SciPy": sp.coo_array((np.ones(EDGES.shape[1]), EDGES), shape=(N, N)).tocsr(),
    }
    graph = nx.Graph(np.array(IDS)[EDGES].T.tolist())
    return (numbers | {"table": named_edges(), "networkx": graph})[kind]


@pytest.mark.parametrize("kind", ["array", "list", "torch", "SciPy", "table", "networkx"])
def test_edges_of_any_kind_are_the_same_graph(kind) -> None:
    expected = small(epochs=3).fit(table(), LABELS, edge_index=EDGES).predict_proba()
    model = small(epochs=3).fit(table(), LABELS, edge_index=given_edges(kind))
    assert (model.predict_proba() == expected).all()
    assert model.node_ids_.tolist() == IDS
    if kind not in ("table", "networkx"):
        plain = [
            small(epochs=3).fit(X, TRUTH, edge_index=edges).predict_proba() for edges in (EDGES, given_edges(kind))
        ]
        assert (plain[0] == plain[1]).all()


def test_arrays_meet_tables_and_graphs_with_ids_by_node_ids() -> None:
    for kind in ("table", "networkx"):
        model = small(epochs=3).fit(X, TRUTH, edge_index=given_edges(kind), node_ids=IDS)
        assert (model.predict_proba() == small(epochs=3).fit(X, TRUTH, edge_index=EDGES).predict_proba()).all()
        with pytest.raises(InputError, match=r"edge_index, row 1: 'tree \d+' is not a node number; give node_ids"):
            small().fit(X, TRUTH, edge_index=given_edges(kind))
    with pytest.raises(InputError, match=r"is not an id in nodes.*its nodes are 0 to 59"):
        small().fit(table().reset_index(drop=True), TRUTH, edge_index=named_edges())
    with pytest.raises(InputError, match=r"edge_index is a matrix of shape \(3, 3\): give 60 × 60"):
        small().fit(X, TRUTH, edge_index=sp.eye_array(3))


def test_tables_of_polars_are_read() -> None:
    nodes, edges = (SimpleNamespace(to_pandas=read) for read in (table, named_edges))  # which has such methods
    model = small(epochs=3).fit(nodes, LABELS, edge_index=edges)
    assert (model.predict_proba() == small(epochs=3).fit(table(), LABELS, edge_index=EDGES).predict_proba()).all()
    tables = table().reset_index(names="id"), named_edges()
    given = [SimpleNamespace(to_arrow=lambda frame=frame: pa.Table.from_pandas(frame)) for frame in tables]
    assert gcnsl.from_tables(*given).x.equal(gcnsl.from_tables(*tables).x)


def test_directions_and_weights_come_with_the_edges() -> None:
    arcs = nx.DiGraph()
    arcs.add_weighted_edges_from((IDS[u], IDS[v], 1 + u % 3) for u, v in EDGES.T.tolist() if u < v)
    graph = small(epochs=1).fit(table(), LABELS, edge_index=arcs).graph_
    assert graph.arc_index.shape == (2, arcs.number_of_edges())
    assert sorted(set(graph.arc_weight.tolist())) == [1, 2, 3]
    assert "arc_index" not in small(epochs=1).fit(table(), LABELS, edge_index=arcs, directed=False).graph_
    weights = np.linspace(1, 2, EDGES.shape[1])
    weighted = small(epochs=1).fit(table(), LABELS, edge_index=named_edges().assign(weight=weights)).graph_
    for edges in (named_edges(), EDGES):
        model = small(epochs=1).fit(table(), LABELS, edge_index=edges, edge_weight=weights)
        assert model.graph_.edge_weight.equal(weighted.edge_weight)
        with pytest.raises(InputError, match=r"edge_weight has shape \(1,\) .* give a number for each of \d+ edges"):
            small().fit(table(), LABELS, edge_index=edges, edge_weight=weights[:1])
    back = gcnsl.to_networkx(graph)
    assert set(back.edges) == set(arcs.edges)
    assert back["tree 1"] == arcs["tree 1"]
    again = gcnsl.from_networkx(back)
    assert again.arc_index.equal(graph.arc_index)
    assert again.x.equal(graph.x)
    assert [again.class_names[c] if c >= 0 else None for c in again.y] == np.where(HIDDEN, None, NAMES[TRUTH]).tolist()


@pytest.mark.parametrize(
    "y",
    [NAMES[TRUTH], TRUTH, TRUTH + 7, TRUTH == 1, TRUTH / 2, pd.Series(NAMES[TRUTH]).astype("category"), TRUTH.tolist()],
    ids=["text", "numbers", "other numbers", "truth", "fractions", "categories", "list"],
)
def test_labels_come_back_in_their_type(y) -> None:
    for given in (X, table()):
        model = small("mlp", epochs=1).fit(given, y, edge_index=EDGES)
        assert model.predict().dtype.kind == np.asarray(y).dtype.kind.replace("O", "U")
        assert set(model.predict()) <= set(np.asarray(y))
        assert set(model.classes_) == set(np.asarray(y))


# Use


def test_fit_predict_score() -> None:
    model = small().fit(table(), LABELS, edge_index=named_edges())
    assert is_classifier(model)
    assert (model.predict(table()) == model.predict()).all(), "of the training nodes, edges need not be given again"
    turned = np.random.default_rng(0).permutation(N)
    assert (model.predict(table().iloc[turned]) == model.predict()[turned]).all(), "by their ids, in any order"
    right = accuracy_score(NAMES[TRUTH][HIDDEN], model.predict()[HIDDEN])
    assert right > 0.6
    assert model.score(table(), NAMES[TRUTH], nodes=HIDDEN) == pytest.approx(right)
    with pytest.raises(InputError, match=r"X has 5 rows, and training had 60 nodes: give edge_index"):
        model.predict(X[:5])
    assert (
        small().fit(X, TRUTH, edge_index=EDGES).predict(X) == small().fit(X, TRUTH, edge_index=EDGES).predict()
    ).all()


def test_new_nodes_are_predicted_in_the_order_of_their_rows(tmp_path) -> None:
    model = small().fit(table(), LABELS, edge_index=named_edges())
    model.save(tmp_path / "model")
    new = pd.concat([table().iloc[[3]].set_axis(["sapling"]), table()])
    edges = pd.concat([named_edges(), pd.DataFrame({"source": ["sapling"], "target": ["tree 3"]})])
    for some in (model, NodeClassifier.load(tmp_path / "model", device="cpu")):
        found = some.predict_proba(new, edge_index=edges)
        assert found.shape == (N + 1, 3)
        assert np.delete(found[1:], 3, axis=0) == pytest.approx(np.delete(some.predict_proba(), 3, axis=0), abs=0.2)


def test_cross_validation_and_grid_search_over_rows_or_numbers() -> None:
    y = NAMES[TRUTH]
    over = small().over_nodes(table(), named_edges())
    cv = StratifiedKFold(3, shuffle=True, random_state=0)
    scores = cross_val_score(over, table(), y, cv=cv, error_score="raise")
    assert scores.mean() > 0.6
    assert (cross_val_score(over, np.arange(N), y, cv=cv) == scores).all()
    several = cross_validate(
        over, table(), y, cv=cv, scoring=["accuracy", "f1_macro", "roc_auc_ovr"], error_score="raise"
    )
    assert several["test_roc_auc_ovr"].min() > 0.5
    assert cross_val_predict(over, table(), y, cv=cv, method="predict_proba").shape == (N, 3)
    grid = GridSearchCV(over, {"classifier__lr": [1e-6, 0.03]}, cv=cv, error_score="raise").fit(table(), y)
    assert grid.best_params_ == {"classifier__lr": 0.03}
    assert (grid.predict(table().iloc[5:9]) == grid.best_estimator_.predict(range(5, 9))).all()
    with pytest.raises(InputError, match=r"edge_index is missing: .*over_nodes"):
        cross_val_score(small(), table(), y, cv=cv, error_score="raise")
    with pytest.raises(InputError, match="nodes has shape"):
        over.fit(table().set_axis([f"shrub {i}" for i in range(N)]), y)


def test_pipelines_pass_the_edges_on() -> None:
    columns = make_column_transformer((OneHotEncoder(), ["side"]), (StandardScaler(), list("abcde")))
    pipe = make_pipeline(columns, small()).set_output(transform="default")
    pipe.fit(table(), LABELS, nodeclassifier__edge_index=EDGES)
    assert (pipe.predict(table()) == pipe[-1].predict()).all()
    assert pipe.score(table(), LABELS) > 0.6
    assert clone(pipe).set_params(nodeclassifier__lr=0.5)[-1].options["lr"] == 0.5
    spectral = SpectralFeatures(n_components=4).set_output(transform="pandas").fit(table()[list("abcde")])
    assert spectral.transform(table()[list("abcde")]).shape == (N, 4)
    assert spectral.transform(table()[list("abcde")]).index.tolist() == IDS


def test_repr_clone_and_parameters() -> None:
    model = small("h2gcn-2", dropout=0.3)
    assert clone(model).get_params() == model.get_params()
    assert "dropout=0.3" in repr(model)
    assert "NodeClassifier" in model._repr_html_()
    assert vars(GCNSLClassifier(epsilon=0.7)) == GCNSLClassifier(epsilon=0.7).get_params()


def test_in_a_notebook_the_leaderboard_is_shown(monkeypatch) -> None:
    make_quick(monkeypatch)
    model = NodeClassifier(quality="fast", minutes=5).fit(X, TRUTH, edge_index=EDGES)
    assert model.method == "auto", "by default"
    shown = model._repr_mimebundle_()["text/html"]
    for name in model.leaderboard_["model"]:
        assert f"<td>{name}</td>" in shown


def test_progress_in_a_notebook_a_terminal_and_the_log(monkeypatch, capsys, caplog) -> None:
    shown: list[str] = []
    handle = SimpleNamespace(update=shown.append)
    ipython, display = ModuleType("IPython"), ModuleType("IPython.display")
    ipython.get_ipython = lambda: SimpleNamespace(kernel=True)
    display.HTML, display.display = str, lambda line, display_id: shown.append(line) or handle
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    monkeypatch.setattr(progress, "LOGGED_SECONDS", 0)
    caplog.set_level(logging.INFO, logger="gcnsl")
    small(epochs=3).fit(X, TRUTH, edge_index=EDGES)
    assert len(shown) == 3
    assert "epoch 3" in shown[-1]
    assert [record.message.startswith("epoch") for record in caplog.records] == [True] * 3
    small(epochs=3, verbose=False).fit(X, TRUTH, edge_index=EDGES)
    assert len(shown) == 3
    monkeypatch.delitem(sys.modules, "IPython")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    small(epochs=3).fit(X, TRUTH, edge_index=EDGES)
    assert "epoch 3" in capsys.readouterr().err


# scikit-learn's own checks


NOT_FOR_GRAPHS = {
    "check_no_attributes_set_in_init": "the method's options are in one dict",
    "check_do_not_raise_errors_in_init_or_set_params": "unknown options are refused at once",
    "check_methods_sample_order_invariance": "the training nodes come first, in their order",
    "check_methods_subset_invariance": "a node is predicted with its graph",
    "check_fit_idempotent": "a node is predicted with its graph",
    "check_class_weight_classifiers": "a node is predicted with its graph",
    "check_fit2d_predict1d": "says how many rows the graph has",
    "check_n_features_in_after_fitting": "names the node and the feature that differ from training",
    "check_estimators_empty_data_messages": "nodes may have no features",
    "check_classifiers_regression_target": "few different fractions are classes",
    "check_complex_data": "refused in other words",
    "check_dtype_object": "refused in other words",
    "check_supervised_y_2d": "refused in other words",
    "check_requires_y_none": "refused in other words",
}
"""The checks of scikit-learn that a graph does not meet, and why; docs/tutorials/scikit-learn.md tells of them."""


class WithoutEdges:
    """A classifier of nodes without edges, of which scikit-learn's checks know nothing."""

    def fit(self, X, y):
        return super().fit(X, y, edge_index=np.empty((2, 0), dtype=int))


class Classifier(WithoutEdges, NodeClassifier):
    pass


class OfGCNSL(WithoutEdges, GCNSLClassifier):
    pass


@pytest.mark.filterwarnings("ignore")
def test_scikit_learns_checks() -> None:
    failed = set()
    for model in (Classifier("mlp", epochs=3), Classifier("logistic"), OfGCNSL(epochs=3, n_components=2)):
        found = check_estimator(model.set_params(device="cpu"), expected_failed_checks=NOT_FOR_GRAPHS, on_fail=None)
        assert {result["check_name"] for result in found if result["status"] == "failed"} == set()
        failed |= {result["check_name"] for result in found if result["status"] == "xfail"}
        assert sum(result["status"] == "passed" for result in found) > 35
    assert failed == NOT_FOR_GRAPHS.keys(), "none is excused without need"
