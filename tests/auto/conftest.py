import pytest


@pytest.fixture(autouse=True, scope="module")
def one_thread(single_thread):
    """All tests here work on small matrices."""
