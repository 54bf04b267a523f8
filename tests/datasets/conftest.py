import pytest


@pytest.fixture
def cache(monkeypatch, tmp_path):
    """A cache folder for each test, which does not exist yet."""
    monkeypatch.setattr("gcnsl.datasets.benchmarks.cache_folder", lambda: tmp_path / "cache")
    return tmp_path / "cache" / "structure"
