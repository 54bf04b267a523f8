import subprocess
import sys

import pytest

import gcnsl


def test_public_names_are_there() -> None:
    for name in gcnsl.__all__:
        assert getattr(gcnsl, name).__name__ == name
        assert name in dir(gcnsl)


def test_unknown_names_are_not() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        gcnsl.nothing  # noqa: B018


def test_import_is_cheap() -> None:
    script = "import sys, gcnsl; print(sorted({'torch', 'pandas', 'numpy', 'matplotlib'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
