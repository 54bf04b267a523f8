import subprocess
import sys

import pytest

import gcnsl.nn
from gcnsl import auto, datasets, graph, methods, nn, training

PACKAGES = [gcnsl, datasets, graph, methods, nn, auto, training]


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_a_package_has_what_it_exports(package) -> None:
    assert set(package.__all__) <= set(dir(package))
    for name in package.__all__:
        found = getattr(package, name)
        assert getattr(found, "__name__", name) == name, "a name is not that of a module, too"


def test_an_unknown_name_is_none() -> None:
    with pytest.raises(AttributeError, match=r"module 'gcnsl\.nn' has no attribute 'nothing'"):
        gcnsl.nn.nothing  # noqa: B018
    with pytest.raises(ImportError):
        from gcnsl.nn import nothing  # noqa: F401


@pytest.mark.parametrize(
    "module",
    [
        "nn.config",
        "plain.plain_config",
        "methods.registry",
        "methods.resolver",
        "auto.auto_settings",
        "datasets.benchmarks",
        "graph.tables",
        "experiments.plan",
        "storage",
    ],
)
def test_what_is_declared_and_checked_needs_no_torch(module) -> None:
    script = f"import sys, gcnsl.{module}; print(sorted({{'torch', 'sklearn', 'optuna'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_package_alone_needs_nothing() -> None:
    script = "import sys, gcnsl; print(sorted({'torch', 'pandas', 'numpy'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
