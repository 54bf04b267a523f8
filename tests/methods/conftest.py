import pytest


@pytest.fixture(autouse=True, scope="module")
def one_thread(single_thread):
    """All tests here work on small matrices."""


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch, tmp_path_factory) -> None:
    """Geom-GCN keeps what it computes; one folder serves all tests of a session."""
    monkeypatch.setattr("gcnsl.datasets.benchmarks.cache_folder", lambda: tmp_path_factory.getbasetemp() / "cache")
