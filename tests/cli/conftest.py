import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gcnsl import synthetic

from .cases import TRAIN

COLOURS = np.array(["blue", "green", "red"])


@pytest.fixture(scope="session")
def frames() -> tuple[pd.DataFrame, pd.DataFrame]:
    """A graph of people with favourite colours, as two tables; ten have not told theirs."""
    data = synthetic(n=90, h=0.8, classes=3, degree=4, features=8, seed=0, signal=0.95)
    nodes = pd.DataFrame(data.x.numpy(), columns=[f"f{i}" for i in range(8)])
    nodes.insert(0, "id", [f"p{i}" for i in range(90)])
    nodes["label"] = np.where(np.arange(90) < 10, None, COLOURS[data.y.numpy()])
    once = data.edge_index[:, data.edge_index[0] <= data.edge_index[1]].numpy()
    edges = pd.DataFrame({"source": [f"p{i}" for i in once[0]], "target": [f"p{i}" for i in once[1]]})
    return nodes, edges


@pytest.fixture
def people(tmp_path, frames) -> tuple[str, ...]:
    """Options that name the graph, as CSV files."""
    for name, frame in zip(("nodes", "edges"), frames, strict=True):
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    return ("--nodes", str(tmp_path / "nodes.csv"), "--edges", str(tmp_path / "edges.csv"))


@pytest.fixture
def weighted(tmp_path, people) -> tuple[str, ...]:
    """The same with a weight for each edge."""
    edges = pd.read_csv(tmp_path / "edges.csv")
    edges.assign(weight=np.linspace(1, 3, len(edges))).to_csv(tmp_path / "edges.csv", index=False)
    return people


@pytest.fixture
def model(gcnsl, people, tmp_path, tmp_path_factory):
    """A copy of a model of the graph, which is trained once."""
    trained = tmp_path_factory.getbasetemp() / "trained"
    if not trained.exists():
        code, _, err = gcnsl("train", *people, *TRAIN, "-o", trained)
        assert code == 0, err
    return Path(shutil.copytree(trained, tmp_path / "model"))
