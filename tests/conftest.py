"""Shared test set-up: where the real datasets are, and what happens when they are not."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "gcnsl",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],  # machines are noisy
    derandomize="CI" in os.environ,  # new examples are for those who can look into them
)
settings.load_profile("gcnsl")


@pytest.fixture(scope="session")
def data_root() -> Path:
    """The folder of the real datasets; tests that ask for it skip, with a reason, where there is none."""
    root = os.environ.get("GCNSL_DATA", "")
    if root and Path(root).is_dir():
        return Path(root)
    reason = f"GCNSL_DATA({root!r}) is not a folder with the real datasets"
    if os.environ.get("GCNSL_REQUIRE_DATA"):
        pytest.fail(reason)
    pytest.skip(reason)
