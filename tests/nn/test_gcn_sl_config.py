"""GCN-SL's configuration: its defaults, and the spectral features that it precomputes."""

import inspect
from dataclasses import fields

import pytest
import torch

from gcnsl import synthetic
from gcnsl.graph import from_arrays
from gcnsl.nn import GCNSL, GCNSLConfig

N, D, CLASSES = 24, 9, 3


def test_model_and_configuration_have_the_same_defaults() -> None:
    declared = {field.name: field.default for field in fields(GCNSLConfig)}
    arguments = inspect.signature(GCNSL.__init__).parameters.values()
    defaults = {argument.name: argument.default for argument in arguments if argument.default is not argument.empty}
    assert defaults == {name: declared[name] for name in defaults}
    left = {"hidden_channels", "feature_norm", "standardize", "feature_shift", "n_components", "n_anchors"}
    assert declared.keys() - defaults.keys() == left | {"spectral_method", "spectral_scale", "use_spectral"}


@pytest.mark.parametrize("options", [{"n_components": 0}, {"use_spectral": False}])
@pytest.mark.parametrize("sparse", [False, True])
def test_without_spectral_features_nothing_is_precomputed(sparse, options) -> None:
    data, config = synthetic(n=N, h=0.4, classes=CLASSES, degree=3, features=D, seed=1), GCNSLConfig(**options)
    data.x = data.x.to_sparse_csr() if sparse else data.x
    assert config.precompute(data, seed=0) is None
    assert config.from_state({}, {}, data, seed=0) is None
    *_, spectral = inputs = config.inputs(data, None, seed=0)
    assert spectral.layout == torch.strided
    assert spectral.shape == (N, 0)
    assert config.build(D, CLASSES, N)(*inputs).shape == (N, CLASSES)


@pytest.mark.parametrize("method", ["esc-anch", "esc", "sc"])
def test_spectral_features_come_back_from_their_state_and_grow(method) -> None:
    data = synthetic(n=N, h=0.4, classes=CLASSES, degree=3, features=D, seed=1)
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
