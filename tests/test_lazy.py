import subprocess
import sys

import pytest

import gcnsl.nn
from gcnsl import auto, datasets, graph, methods, nn, training

DECLARATIONS = (
    *("nn.config", "plain.plain_config", "methods.registry", "methods.resolver", "auto.auto_settings"),
    *("datasets.benchmarks", "graph.tables", "experiments.plan", "storage"),
)
"""Modules that declare and check: a command refuses a mistake before anything slow is loaded."""


def test_packages_have_what_they_export_and_nothing_else() -> None:
    for package in (gcnsl, datasets, graph, methods, nn, auto, training):
        assert set(package.__all__) <= set(dir(package))
        for name in package.__all__:
            found = getattr(package, name)
            assert getattr(found, "__name__", name) == name, "a name is not that of a module, too"
    with pytest.raises(AttributeError, match=r"module 'gcnsl\.nn' has no attribute 'nothing'"):
        gcnsl.nn.nothing  # noqa: B018


def test_the_package_alone_and_declarations_load_nothing_slow() -> None:
    script = "import sys, gcnsl; print(sorted({'torch', 'pandas', 'numpy'} & set(sys.modules)))\n"
    script += f"import {', '.join(f'gcnsl.{module}' for module in DECLARATIONS)}\n"
    script += "print(sorted({'torch', 'sklearn', 'optuna'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["[]", "[]"]
