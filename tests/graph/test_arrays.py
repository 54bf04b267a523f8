import numpy as np
import pytest
import scipy.sparse as sp
import torch

from gcnsl import InputError, from_arrays
from gcnsl.graph.arrays import as_array

from .cases import EDGES, X, Y

NAN, BIG = X.copy(), X.copy()
NAN[2, 1], BIG[0, 1] = np.nan, 1e300


@pytest.mark.parametrize("values", [[1.0, 2.0], (1.0, 2.0), torch.tensor([1.0, 2.0], requires_grad=True)])
def test_anything_array_like_becomes_an_array(values) -> None:
    assert as_array(values, "x").tolist() == [1, 2]


def test_anything_else_is_refused_by_name() -> None:
    with pytest.raises(InputError, match="edge_index is not an array"):
        as_array([[1], [2, 3]], "edge_index")


def test_sparse_features_stay_sparse() -> None:
    for sparse in (sp.csr_array(X), sp.coo_matrix(X), torch.tensor(X).to_sparse(), torch.tensor(X).to_sparse_csr()):
        data = from_arrays(sparse, EDGES, Y)
        assert data.x.layout == torch.sparse_csr
        assert data.x.to_dense().tolist() == X.tolist()


def test_sparse_features_in_any_order_and_with_repeated_entries_are_what_scipy_reads() -> None:
    x = sp.csr_array(([1.0, 2.0, 3.0, 4.0], [2, 0, 1, 1], [0, 2, 2, 4, 4]), shape=(4, 3))
    given = x.indices.copy()
    data = from_arrays(x, EDGES, Y)
    with torch.sparse.check_sparse_tensor_invariants():
        torch.sparse_csr_tensor(data.x.crow_indices(), data.x.col_indices(), data.x.values(), (4, 3))
    assert data.x.to_dense().tolist() == x.toarray().tolist()
    assert x.indices.tolist() == given.tolist(), "the caller's matrix stays as it is"


def test_nodes_may_have_no_features() -> None:
    for x in (None, np.empty((4, 0))):
        assert from_arrays(x, EDGES, Y).x.shape == (4, 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"x": np.empty((0, 2))}, r"x has shape \(0, 2\): the graph is empty"),
        ({"x": None, "y": None}, "x and y are both None"),
        ({"x": np.ones(4)}, r"x has shape \(4,\): give a matrix"),
        ({"x": NAN}, r"x\[2, 1\] is nan"),
        ({"x": sp.csr_array(NAN)}, r"x\[2, 1\] is nan"),
        ({"x": BIG}, r"x\[0, 1\] is 1e\+300"),
        ({"x": [["a", "b"]] * 4}, "features must be numbers"),
        ({"x": [[1], [2, 3]]}, "x is not an array"),
    ],
)
def test_bad_features_are_named(arguments, message) -> None:
    with pytest.raises(InputError, match=message):
        from_arrays(**{"x": X, "edge_index": EDGES, "y": Y, **arguments})


def test_tensors_of_any_kind_are_read_or_refused() -> None:
    assert as_array(torch.ones(2, dtype=torch.bfloat16), "x").tolist() == [1, 1]
    with pytest.raises(InputError, match="y is not an array"):
        as_array(torch.eye(2).to_sparse(), "y")
