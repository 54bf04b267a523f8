"""Damaged stores and exports: whatever was done to them, there is an answer or one line that says why not."""

import json
import shutil
import sqlite3
from contextlib import closing
from random import Random

import pytest

from gcnsl.errors import LONGEST
from gcnsl.experiments.plan import Scope
from gcnsl.experiments.result_exports import export_lines
from gcnsl.experiments.result_store import ResultStore
from gcnsl.methods import METHODS

from ..damage import CASES, ODD_VALUES, damaged, damaged_bytes
from .fake_methods import fake_methods
from .plausible import plausible_results

pytestmark = pytest.mark.filterwarnings("always")
COLUMNS = (
    "key",
    "status",
    "seconds",
    "device",
    "version",
    "split_hash",
    "error",
    "finished",
    "spec",
    "metrics",
    "history",
)


@pytest.fixture(scope="module")
def some(tmp_path_factory):
    """A result of each method and each task."""
    with pytest.MonkeyPatch.context() as patch:
        for name, method in fake_methods().items():
            patch.setitem(METHODS, name, method)
        scope = Scope(settings=tmp_path_factory.mktemp("settings"), runs=1, datasets=["texas"])
        results = plausible_results(scope, names=("accuracy", "spectral", "beyond"))
    return list({(result.spec.task, result.spec.method): result for result in results}.values())


@pytest.fixture(scope="module")
def store(tmp_path_factory, some):
    path = tmp_path_factory.mktemp("store") / "results.db"
    with ResultStore(path) as opened:
        opened.add(*some)
    return path


@pytest.fixture(scope="module")
def export(tmp_path_factory, some):
    path = tmp_path_factory.mktemp("export") / "results.jsonl"
    export_lines(some, path)
    return path


@pytest.fixture
def shown(gcnsl, tmp_path, monkeypatch, all_methods):
    """Show the results in a file by all commands that do."""
    monkeypatch.setattr("gcnsl.experiments.run.execute", lambda *_, **__: None)
    reports = [
        part for kind in ("output", "markdown", "latex", "export") for part in (f"--{kind}", tmp_path / f"x.{kind}")
    ]

    def show(path) -> None:
        again = ("reproduce", "accuracy", "--methods", "mlp", "--datasets", "texas", "--runs", 1, "--store")
        into = (path,) if path.suffix == ".db" else (tmp_path / "new.db", "--merge", path)
        commands = (("report", "--store", path, *reports), (*again, *into))
        for command in commands:
            code, _, err = gcnsl(*command)
            assert code in (0, 1, 2), err
            assert all(len(line) < LONGEST + 20 for line in err.splitlines()), err

    return show


@pytest.mark.parametrize("case", range(CASES))
def test_a_damaged_row(store, tmp_path, shown, case) -> None:
    random, path = Random(case), tmp_path / "results.db"
    shutil.copy(store, path)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        rows = connection.execute(f"SELECT rowid, {', '.join(COLUMNS)} FROM runs").fetchall()
        for row, *values in random.sample(rows, 3):
            column = random.choice(COLUMNS + COLUMNS[-3:] * 4)
            old = dict(zip(COLUMNS, values, strict=True))[column]
            if column in COLUMNS[-3:] and random.random() < 0.9 and json.loads(old):
                new = json.dumps(damaged(json.loads(old), random))
            else:
                new = random.choice([value for value in ODD_VALUES if not isinstance(value, list | dict | int)])
                new = new.encode("utf-8", "surrogatepass") if isinstance(new, str) and random.random() < 0.5 else new
                new = "x" if new == "\ud800" else new
            connection.execute(f"UPDATE OR IGNORE runs SET {column} = ? WHERE rowid = ?", [new, row])
    shown(path)


@pytest.mark.parametrize("case", range(CASES))
def test_a_damaged_file(store, tmp_path, shown, case) -> None:
    path = tmp_path / "results.db"
    path.write_bytes(damaged_bytes(store.read_bytes(), Random(case)))
    shown(path)


@pytest.mark.parametrize("case", range(CASES))
def test_a_damaged_line(export, tmp_path, shown, case) -> None:
    random, path = Random(case), tmp_path / "results.jsonl"
    lines = export.read_text().splitlines()
    place = random.randrange(len(lines))
    lines[place] = json.dumps(damaged(json.loads(lines[place]), random))
    path.write_text("\n".join(lines))
    shown(path)
    path.write_bytes(damaged_bytes(export.read_bytes(), random))
    shown(path)
