"""Spectral features as a transform of PyTorch Geometric."""

import copy

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.transforms import Compose, NormalizeFeatures

from gcnsl import AddSpectralFeatures, InputError, SpectralFeatures


def data(*, sparse: bool = False) -> Data:
    x = torch.rand(30, 6, generator=torch.Generator().manual_seed(0))
    return Data(x=x.to_sparse_csr() if sparse else x, edge_index=torch.tensor([[0, 1], [1, 2]]))


@pytest.mark.parametrize("sparse", [False, True])
def test_it_adds_what_the_transformer_computes(sparse) -> None:
    given = data(sparse=sparse)
    wanted = SpectralFeatures("esc", n_components=3).fit_transform(given.x)
    transform = AddSpectralFeatures(3, attr_name="F", method="esc", scale="unit")
    found = transform(given)
    assert found.F.equal(wanted)
    assert "F" not in given  # a transform does not change what it is given
    assert transform(copy.copy(given)).F.equal(wanted)


def test_in_a_chain_features_stand_beside_x() -> None:
    chain = Compose([NormalizeFeatures(), AddSpectralFeatures(4, attr_name=None, n_anchors=10)])
    assert chain(data()).x.shape == (30, 10)
    assert chain(data()).x.equal(chain(data()).x)
    assert chain(data()).x[:, :6].sum(dim=1).allclose(torch.ones(30))
    assert "AddSpectralFeatures(4)" in repr(chain)


def test_what_has_no_features_is_named() -> None:
    with pytest.raises(InputError, match="data has no x"):
        AddSpectralFeatures(2)(Data(num_nodes=3))
    with pytest.raises(InputError, match=r"data\.x is sparse: name an attribute"):
        AddSpectralFeatures(2, attr_name=None)(data(sparse=True))
