"""Damaged folders of models: they are refused, or predict what the undamaged one predicts; no code in them is run.

Half of them have a correct checksum, as if someone had written them on purpose. As the checksum vouches for what is in
a model, these may predict something else or fail in any way, but run no code, and predict nothing that is not finite.
A folder that can be loaded is also used by one of the commands that take a model.
"""

from __future__ import annotations

import json
import pickle
import random
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import safetensors.torch
import torch
from bench.hostile.cases import Case
from bench.hostile.damage import damaged_bytes, damaged_document

import gcnsl
from gcnsl.cli import app
from gcnsl.datasets import with_random_split
from gcnsl.files import tensor_bytes
from gcnsl.storage import FILE, KEY, checksum

ENDLESS = True
METHODS = ("gcn-sl", "gcn-sl-plus", "mlp", "logistic", "boosted-trees", "twins", "auto")
COMMANDS = (
    "predict {}/model -o {}/predictions.csv --quiet",
    "predict {}/model --nodes {}/nodes.csv --edges {}/edges.csv -o {}/predictions.csv --quiet",
    "explain {}/model n3 --json",
    "report {}/model -o {}/page.html --seconds 0.1 --quiet",
)
CANARY = "code-was-run"
FORGED = ("config", "tensors")
"""Damages with a correct checksum."""


class _Bomb:
    """Pickled, it makes a file when it is loaded."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (Path(self.path),)


def cases(rng: random.Random) -> Iterator[Case]:
    """Damaged copies of a few models, without end."""
    models = {name: _trained(name) for name in METHODS}
    while True:
        seed, name = rng.randrange(2**31), rng.choice(METHODS)
        files, expected = models[name]
        how = rng.choice(["bytes", *FORGED, "pickle"])
        wanted = expected if how in ("bytes", "pickle") else None
        yield Case(f"models, {how}", f"{name}, seed {seed}", partial(load, files, how, seed), partial(fault, wanted))


def load(files: dict[str, bytes], how: str, seed: int) -> tuple[Any, bool]:
    """The predictions of a damaged copy, and whether code in it was run."""
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        canary = Path(folder, CANARY)
        spoilt = _spoilt(files, how, rng, str(canary))
        model = Path(folder, "model")
        model.mkdir()
        for name, content in spoilt.items():
            (model / name).write_bytes(content)
        try:
            probabilities = gcnsl.NodeClassifier.load(model, device="cpu").predict_proba()
            _use(model.parent, rng.choice(COMMANDS))
            return probabilities, canary.exists()
        except Exception as error:
            if canary.exists():
                return None, True
            if how in FORGED:
                raise gcnsl.InputError("refused") from error
            raise


def fault(expected: Any, result: tuple[Any, bool]) -> str:
    """What is wrong with the predictions of a damaged model."""
    probabilities, code_was_run = result
    if code_was_run:
        return "code was run"
    if not np.isfinite(probabilities).all():
        return "it predicts what is not finite"
    return "" if expected is None or np.array_equal(probabilities, expected) else "it predicts something else"


def _spoilt(files: dict[str, bytes], how: str, rng: random.Random, canary: str) -> dict[str, bytes]:
    files, name = dict(files), rng.choice(sorted(files))
    if how == "bytes":
        if rng.random() < 0.1:
            del files[name]
        else:
            files[name] = damaged_bytes(files[name], rng)
    elif how == "pickle":
        files[name] = pickle.dumps(_Bomb(canary))
        if rng.random() < 0.5:
            files["pytorch_model.bin"] = files[name]
    else:
        content = files[FILE]
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
        document, tensors = json.loads(header["__metadata__"][KEY]), safetensors.torch.load(content)
        if how == "config":
            document["config"] = damaged_document(document["config"], rng)
        else:
            _spoil(tensors, rng)
        del document["sha256"]
        signed = json.dumps(document | {"sha256": checksum(document, tensors)})
        files[FILE] = tensor_bytes(tensors, {KEY: signed})
    return files


def _spoil(tensors: dict[str, torch.Tensor], rng: random.Random) -> None:
    name, what = rng.choice(sorted(tensors)), rng.randrange(7)
    tensor = tensors[name]
    if what == 0:
        del tensors[name]
    elif what == 1:
        tensors[name] = tensor.to(rng.choice([torch.float64, torch.int64, torch.uint8, torch.float16]))
    elif what == 2:
        tensors[name] = tensor[: max(0, len(tensor) - 1)].clone() if tensor.ndim else tensor[None]
    elif what == 3:
        tensors[name] = tensor.flatten()[None].clone()
    elif what == 4 and tensor.is_floating_point() and tensor.numel():
        tensor.view(-1)[rng.randrange(tensor.numel())] = rng.choice([float("nan"), float("inf"), 1e38])
    elif what == 5 and not tensor.is_floating_point() and tensor.numel():
        tensor.view(-1)[rng.randrange(tensor.numel())] = rng.choice([0, 1, 120])
        if tensor.dtype == torch.int64:
            tensor.view(-1)[rng.randrange(tensor.numel())] = rng.choice([-1, 10**6, 2**62])
    else:
        tensors["unheard of"] = torch.zeros(3)


def _use(folder: Path, command: str) -> None:
    """Give a command about the model in a folder."""
    for name, table in zip(("nodes", "edges"), _tables(), strict=True):
        table.to_csv(folder / f"{name}.csv", index=False)
    app(command.replace("{}", str(folder)).split(), standalone_mode=False)


def _tables() -> tuple[pd.DataFrame, pd.DataFrame]:
    """A graph of 60 nodes whose columns are of several kinds, as tables of nodes and edges."""
    data = gcnsl.synthetic(n=60, classes=3, degree=4.0, features=6)
    nodes = pd.DataFrame(data.x.numpy(), columns=[f"f{i}" for i in range(6)])
    nodes.insert(0, "id", [f"n{i}" for i in range(60)])
    nodes["kind"], nodes["since"] = [*"abc"] * 20, pd.date_range("2020-01-01", periods=60)
    nodes.loc[::7, "f0"] = np.nan
    nodes["label"] = np.array(["red", "green", "blue"])[data.y]
    return nodes, pd.DataFrame(nodes["id"].to_numpy()[data.edge_index.T], columns=["source", "target"])


def _trained(method: str) -> tuple[dict[str, bytes], Any]:
    """The files of a small model, and its predictions."""
    options = {"minutes": 0.05, "quality": "fast", "processes": 1} if method == "auto" else {"epochs": 3}
    options = {} if method == "twins" else options
    classifier = gcnsl.NodeClassifier(method, device="cpu", **options)
    classifier.fit_graph(with_random_split(gcnsl.from_tables(*_tables())))
    with tempfile.TemporaryDirectory() as folder:
        classifier.save(Path(folder, "model"))
        files = {path.name: path.read_bytes() for path in Path(folder, "model").iterdir()}
    return files, classifier.predict_proba()
