import numpy as np

from gcnsl import from_arrays
from gcnsl.estimator.predictions import prediction_table

from .cases import EDGES, NAMES, TRUTH, N, X, fitted

IDS = np.array([f"n{i}" for i in range(N)])


def test_the_training_graph() -> None:
    model = fitted(y=NAMES[TRUTH], fit={"node_ids": IDS})
    table = prediction_table(model, by_class=True).to_pandas()
    probabilities = model.predict_proba()
    assert table["id"].tolist() == IDS.tolist()
    assert table["predicted"].tolist() == model.predict().tolist()
    assert (table["probability"].to_numpy() == probabilities.max(axis=1)).all()
    for i, name in enumerate(model.classes_):
        assert (table[f"probability_{name}"].to_numpy() == probabilities[:, i]).all()


def test_nodes_without_ids_are_numbered() -> None:
    table = prediction_table(fitted()).to_pandas()
    assert table.columns.tolist() == ["id", "predicted", "probability"]
    assert table["id"].tolist() == list(range(N))


def test_another_graph_has_its_own_order_and_ids() -> None:
    model = fitted(fit={"node_ids": IDS})
    order = np.random.default_rng(0).permutation(N)
    data = from_arrays(X[order], np.argsort(order)[EDGES], node_ids=IDS[order])
    table = prediction_table(model, data).to_pandas()
    assert table["id"].tolist() == IDS[order].tolist()
    assert table["predicted"].tolist() == model.predict()[order].tolist()
