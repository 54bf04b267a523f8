import gzip

import pytest


@pytest.fixture
def write(tmp_path):
    """Write a file into the test's own folder and return its path."""

    def write(name: str, text: str):
        path = tmp_path / name
        path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
        return path

    return write
