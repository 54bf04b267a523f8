import pytest
import torch


@pytest.fixture(autouse=True, scope="module")
def one_thread(single_thread):
    """All tests here work on small matrices."""


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch, tmp_path_factory) -> None:
    """Geom-GCN keeps what it computes; one folder serves all tests of a session."""
    monkeypatch.setattr("gcnsl.datasets.benchmarks.cache_folder", lambda: tmp_path_factory.getbasetemp() / "cache")


@pytest.fixture
def double():
    """Double precision, so that a model and its equations agree to the last digits."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.double)
    yield
    torch.set_default_dtype(before)
