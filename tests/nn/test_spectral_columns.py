"""The spectral features that GCN-SL's configuration precomputes."""

import pytest
import torch

from gcnsl.graph import from_arrays
from gcnsl.nn import GCNSLConfig

from .cases import CLASSES, D, N, small_graph


@pytest.mark.parametrize("options", [{"n_components": 0}, {"use_spectral": False}])
@pytest.mark.parametrize("sparse", [False, True])
def test_without_spectral_features_nothing_is_precomputed(sparse, options) -> None:
    data, config = small_graph(), GCNSLConfig(**options)
    data.x = data.x.to_sparse_csr() if sparse else data.x
    assert config.precompute(data, seed=0) is None
    assert config.from_state({}, {}, data, seed=0) is None
    *_, spectral = inputs = config.inputs(data, None, seed=0)
    assert spectral.layout == torch.strided
    assert spectral.shape == (N, 0)
    assert config.build(D, CLASSES, N)(*inputs).shape == (N, CLASSES)


@pytest.mark.parametrize("method", ["esc-anch", "esc", "sc"])
def test_spectral_features_come_back_from_their_state_and_grow(method) -> None:
    data = small_graph()
    grown = from_arrays(torch.cat([data.x, data.x[:2] + 0.5]), data.edge_index)
    config = GCNSLConfig(n_components=3, spectral_method=method)
    columns = config.precompute(data, seed=0)
    plain, tensors = columns.state()
    again = config.from_state(plain, tensors, data, seed=0)
    assert "values" in tensors, "the caller's state is left as it is"
    assert again.values.equal(columns.values)
    assert columns.grown(data) is columns
    new, later = columns.grown(grown).values, again.grown(grown).values
    assert new.equal(later)
    assert new[:N].equal(columns.values)
    assert new.shape == (N + 2, 3)
    with pytest.raises(ValueError, match=r"values \(torch.float32, \(24, 3\)\) is not a finite tensor of .* \(26, 3\)"):
        config.from_state(plain, tensors, grown, seed=0)
