import importlib.metadata

import gcnsl
from gcnsl.version import __version__


def test_the_version_is_that_of_the_distribution() -> None:
    assert gcnsl.__version__ == __version__ == importlib.metadata.version("gcnsl")
