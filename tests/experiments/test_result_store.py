import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from gcnsl import InputError
from gcnsl.experiments.result_exports import read_results
from gcnsl.experiments.result_store import ResultStore, StoreWarning, by_key
from gcnsl.experiments.spec import as_options
from gcnsl.methods import METHODS

from .cases import result, spec

WRITER = [sys.executable, str(Path(__file__).with_name("cases.py"))]


@pytest.fixture
def store(tmp_path):
    with ResultStore(tmp_path / "folder" / "results.db") as made:
        yield made


def test_results_come_back_as_they_went_in(store) -> None:
    whole = result(3, history={"val_accuracy": [0.1, 0.2]}, finished="2021-05-28T00:00:00+00:00")
    store.add(whole, result(1, status="failed"), result(2))
    assert store.results() == [result(1, status="failed"), result(2), whole]
    assert store.finished() == {
        spec(1).key: ("failed", ""),
        spec(2).key: ("ok", ""),
        spec(3).key: ("ok", "2021-05-28T00:00:00+00:00"),
    }
    assert [store.has(spec(run)) for run in range(4)] == [False, False, True, True]
    assert read_results(store.path) == store.results()


def test_a_failure_is_replaced_and_a_good_result_never(store) -> None:
    store.add(result(0, status="failed"))
    store.add(result(0, test=0.7))
    store.add(result(0, test=0.1))
    store.add(result(0, status="failed"))
    assert store.results() == [result(0, test=0.7)]


def test_two_processes_write_and_one_is_killed(store) -> None:
    with (
        subprocess.Popen([*WRITER, store.path, "0"], stdout=subprocess.PIPE, text=True) as first,
        subprocess.Popen([*WRITER, store.path, "5000"], stdout=subprocess.PIPE, text=True) as second,
    ):
        said = [[int(next(process.stdout)) for _ in range(20)] for process in (first, second)]
        first.kill()
        said.append([int(next(second.stdout)) for _ in range(20)])
        second.kill()
        said.append([int(line) for process in (first, second) for line in process.stdout if line.endswith("\n")])
    runs = {found.spec.run for found in store.results()}
    assert runs >= {run for part in said for run in part}
    with closing(sqlite3.connect(store.path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_what_is_no_store_is_refused_and_left_alone(tmp_path) -> None:
    text, foreign = tmp_path / "notes.txt", tmp_path / "other.db"
    text.write_text("not a database, but long enough to be taken for one" * 20)
    with closing(sqlite3.connect(foreign)) as connection:
        connection.execute("CREATE TABLE things (name)")
    for path, message in ((text, "file is not a database"), (foreign, "belongs to another program")):
        before = path.read_bytes()
        with pytest.raises(InputError, match=message):
            ResultStore(path)
        assert path.read_bytes() == before
    with pytest.raises(InputError, match="can't be used as a store"):
        ResultStore(tmp_path)
    with pytest.raises(InputError, match="there is no such file; `gcnsl reproduce` makes one"):
        read_results(tmp_path / "absent.db")


DAMAGE = [
    "metrics = '{'",
    "metrics = NULL",
    "metrics = '[1]'",
    """metrics = '{"test":"high"}'""",
    """metrics = '{"test":{}}'""",
    """metrics = '{"options":[]}'""",
    """device = CAST(x'ff' AS TEXT)""",
    """spec = json_set(spec, '$.options.lr', json('1e999'))""",
    r"""spec = replace(spec, '"texas"', '"\ud800"')""",
    """metrics = '{"test":NaN}'""",
    """metrics = '{"test":0.5,"val":null}'""",
    """metrics = '{"test":0.5,"train_nodes":0,"test_nodes":3}'""",
    """metrics = '{"test":0.5,"train_nodes":3}'""",
    """spec = json_set(spec, '$.task', 'search')""",
    "spec = '[]'",
    "spec = '{}'",
    "spec = json_set(spec, '$.run', 1000000000)",
    "spec = json_set(spec, '$.options.lr', json('{}'))",
    "status = 'fine'",
    "device = x'00ff'",
    "seconds = 'long'",
    """history = '{"val":[null]}'""",
]


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_row_is_named_counts_as_not_made_and_is_replaced(store, damage) -> None:
    store.add(result(0), result(1))
    with closing(sqlite3.connect(store.path, isolation_level=None)) as connection:
        connection.execute(f"UPDATE runs SET {damage} WHERE key = ?", [spec(1).key])
    with pytest.warns(StoreWarning, match=f"results.db: the run with the key '{spec(1).key}' is damaged"):
        assert store.results() == [result(0)]
    with pytest.warns(StoreWarning):
        assert not store.has(spec(1))
    with pytest.warns(StoreWarning):
        store.add(result(1, test=0.3))
    assert store.results() == [result(0), result(1, test=0.3)]


def test_a_killed_run_leaves_a_mark(store) -> None:
    with store.begun(spec(0)):
        assert store.unfinished() == {spec(0).key}
    assert store.unfinished() == set()
    with pytest.raises(KeyboardInterrupt), store.begun(spec(0)):
        raise KeyboardInterrupt
    assert store.unfinished() == set()
    mark = store.begun(spec(1))
    mark.__enter__()
    with ResultStore(store.path) as later:
        assert later.unfinished() == {spec(1).key}


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr("gcnsl.experiments.result_store._WAIT_SECONDS", 0.01)
    monkeypatch.setattr("gcnsl.experiments.result_store._PAUSE_SECONDS", 0.01)


@pytest.mark.usefixtures("impatient")
@pytest.mark.filterwarnings("ignore::gcnsl.experiments.result_store.StoreWarning")
def test_a_store_that_another_program_keeps_locked_is_named(store) -> None:
    with closing(sqlite3.connect(store.path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        with pytest.raises(InputError, match=r"\(database is locked\): free the disk or end the program that uses it"):
            ResultStore(store.path)


@pytest.mark.usefixtures("impatient")
def test_reading_needs_no_right_to_write(store) -> None:
    store.add(result(0))
    before = store.path.read_bytes()
    with closing(sqlite3.connect(store.path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")  # others may read now, but not write
        store.path.chmod(0o400)
        store.path.parent.chmod(0o500)
        assert read_results(store.path) == [result(0)]
        store.path.parent.chmod(0o700)
    assert store.path.read_bytes() == before
    assert [path.name for path in store.path.parent.iterdir()] == ["results.db"]


def test_a_lock_is_waited_for_with_a_message(store, monkeypatch) -> None:
    monkeypatch.setattr("gcnsl.experiments.result_store._PAUSE_SECONDS", 0.01)
    connection = sqlite3.connect(store.path, isolation_level=None, check_same_thread=False)
    connection.execute("BEGIN EXCLUSIVE")
    release = threading.Timer(0.5, connection.close)
    release.start()
    message = r"results.db can't be used \(database is locked\): waiting for at most 10 minutes"
    with pytest.warns(StoreWarning, match=message), ResultStore(store.path) as waiting:
        waiting.add(result(0))
    release.join()
    assert store.results() == [result(0)]


@pytest.mark.usefixtures("impatient")
@pytest.mark.filterwarnings("ignore::gcnsl.experiments.result_store.StoreWarning")
def test_a_full_disk_is_named_and_what_was_stored_stays(store) -> None:
    store.add(result(0))
    store._connection.execute("PRAGMA max_page_count = 1")
    with pytest.raises(InputError, match="database or disk is full"):
        store.add(*(result(run) for run in range(1, 1000)))
    assert store.results() == [result(0)]


def test_a_run_that_lacks_a_newer_option_counts_as_one_with_its_default() -> None:
    old, new = spec(options=as_options({"lr": 0.02})), spec(options=as_options(METHODS["gcn-sl-cc"].options()))
    assert old.key != new.key
    assert list(by_key([result(of=old)])) == [new.key]


def test_and_not_as_one_with_a_default_that_has_changed_since(monkeypatch) -> None:
    old, method = spec(options=as_options({"lr": 0.02})), METHODS["gcn-sl-cc"]
    (before,) = by_key([result(of=old)])
    monkeypatch.setitem(METHODS, "gcn-sl-cc", method.with_options(standardize="never"))
    assert list(by_key([result(of=old)])) == [before]
    assert before != spec(options=as_options(METHODS["gcn-sl-cc"].options())).key


@pytest.mark.parametrize("order", [1, -1])
def test_a_failure_never_hides_a_good_result_of_the_same_run(order) -> None:
    old, new = spec(options=as_options({"lr": 0.02})), spec(options=as_options(METHODS["gcn-sl-cc"].options()))
    both = [result(of=old, status="failed"), result(of=new, test=0.7)]
    (found,) = by_key(both[::order]).values()
    assert found.metrics == {"test": 0.7}
