"""Fixtures for the tests of the operator."""

import pytest


@pytest.fixture(params=["dense", "tiled", "numba"])
def backend(request: pytest.FixtureRequest) -> str:
    """Every back end that runs on a CPU."""
    return str(request.param)
