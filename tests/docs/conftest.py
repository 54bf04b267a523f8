"""A folder in which every example can be followed: tables of a graph, the same after it has grown, our results."""

import pandas as pd
import pytest

import gcnsl
from gcnsl.cli.model_saving import write_page
from gcnsl.methods import METHODS

from ..auto.cases import make_quick
from .pages import ROOT


@pytest.fixture
def quick(monkeypatch):
    """Train for three epochs, try few methods, and explain nodes for a second."""
    make_quick(monkeypatch)
    monkeypatch.setitem(write_page.__kwdefaults__, "seconds", 1.0)
    for name, method in METHODS.items():
        monkeypatch.setitem(METHODS, name, method.with_options(epochs=3))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The working directory, with the files that the pages speak of."""
    data = gcnsl.synthetic(n=60, classes=2, degree=3, features=6)
    names = ["ann", *(f"p{i}" for i in range(1, 60))]
    nodes = pd.DataFrame({"id": names, "label": data.y.numpy()}).join(pd.DataFrame(data.x.numpy()).add_prefix("f"))
    ends = pd.DataFrame(data.edge_index.numpy().T, columns=["source", "target"])
    old = ends[(ends < 50).all(axis=1)]
    for prefix, size, numbers in (("", 50, old), ("grown_", 60, ends)):
        for kind, table in (("nodes", nodes[:size]), ("edges", numbers.map(names.__getitem__))):
            table.to_csv(tmp_path / f"{prefix}{kind}.csv", index=False)
            table.to_parquet(tmp_path / f"{prefix}{kind}.parquet", index=False)
    (tmp_path / "results").symlink_to(ROOT / "results")
    monkeypatch.chdir(tmp_path)
    return tmp_path
