import numpy as np
import pytest
import scipy.sparse as sp
import torch

from gcnsl import NodeClassifier
from gcnsl.estimator import feature_attribution
from gcnsl.estimator.feature_attribution import SparseWithRow, attribute_features
from gcnsl.methods import METHODS
from gcnsl.sparse import SparseMatrix

from .cases import EDGES, X, Y

SPARSE = X * (np.random.default_rng(0).random(X.shape) < 0.1)


def fitted(method: str, x=X):
    return NodeClassifier(method, epochs=15, device="cpu").fit(x, Y, edge_index=EDGES).fitted_


@pytest.mark.parametrize("x", [X, sp.csr_array(SPARSE.astype(np.float32))], ids=["dense", "csr"])
@pytest.mark.parametrize("method", sorted(METHODS.keys() - {"nlgnn", "boosted-trees"}))
def test_the_shares_add_up_to_the_change_of_the_log_odds(method, x) -> None:
    model = fitted(method, x)
    along = feature_attribution._Path(model, 4, one=0, other=2)
    with torch.no_grad():
        before, after = (float(along._log_odds(along._baseline + alpha * along.row)) for alpha in (0.0, 1.0))
    logits = model.logits()[4]
    assert after == pytest.approx(float(logits[0] - logits[2]), abs=1e-4)
    shares = attribute_features(model, 4, one=0, other=2, steps=256)
    assert shares.sum() == pytest.approx(after - before, abs=0.01 * max(0.1, np.abs(shares).sum()))


def test_a_feature_that_the_node_does_not_have_has_no_share() -> None:
    model = fitted("gcn-sl", sp.csr_array(SPARSE.astype(np.float32)))
    node = int(np.argmax((SPARSE != 0).sum(axis=1)))
    shares = attribute_features(model, node, one=1, other=0)
    assert (shares[SPARSE[node] == 0] == 0).all()
    assert shares.any()


def test_the_order_of_nlgnn_is_not_attributed() -> None:
    assert np.isfinite(attribute_features(fitted("nlgnn"), 4, one=0, other=1)).all()


def test_a_linear_model_is_attributed_exactly() -> None:
    model = fitted("mlp")
    with torch.no_grad():
        for lin in model.model.lins:
            lin.bias.fill_(100.0)  # no unit is ever off
    first, last = (lin.weight.detach().numpy() for lin in model.model.lins)
    row = X[4] / np.abs(X[4]).sum()
    expected = row * ((last[0] - last[1]) @ first)
    assert np.allclose(attribute_features(model, 4, one=0, other=1, steps=2), expected, atol=1e-4)


def test_a_row_is_replaced_in_products_only() -> None:
    x, row, w = torch.randn(5, 3), torch.randn(3), torch.randn(3, 2)
    expected = x.clone()
    expected[2] = row
    replaced = SparseWithRow(SparseMatrix(x.to_sparse_csr()), 2, row)
    assert torch.allclose(replaced @ w, expected @ w)
    assert (len(replaced), replaced.shape) == (5, (5, 3))
