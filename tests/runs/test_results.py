"""A file of results loses nothing that was appended, whoever appends and whenever they are killed."""

import errno
import os
import sqlite3
import subprocess
import sys

import pandas as pd
import pytest
from filelock import FileLock

from gcnsl.errors import InputError, WriteError
from gcnsl.runs import results
from gcnsl.runs.results import ResultsWarning, append_records, read_records

RECORDS = [{"key": f"ü{number}", "score": number / 8, "options": {"lr": [0.1, None]}} for number in range(3)]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "new" / "results.jsonl"


@pytest.fixture
def file(path):
    append_records(path, *RECORDS)
    return path


def test_records_come_back_and_pandas_reads_them(path) -> None:
    assert read_records(path, dict) == []
    for record in RECORDS:
        append_records(path, record)
    assert read_records(path, dict) == RECORDS
    assert list(pd.read_json(path, lines=True)["score"]) == [0.0, 0.125, 0.25]


def test_a_file_cut_anywhere_loses_its_last_record_alone(file) -> None:
    content = file.read_bytes()
    start = content[:-1].rindex(b"\n") + 1
    for size in range(start, len(content)):
        file.write_bytes(content[:size])
        whole = 3 if size == len(content) - 1 else 2  # only the line feed is missing
        assert read_records(file, dict) == RECORDS[:whole]
        append_records(file, RECORDS[0])
        assert read_records(file, dict) == [*RECORDS[:whole], RECORDS[0]]


@pytest.mark.parametrize("text", ["{", "[]", "\xff", "[" * 100_000, '{"key": 1}'])
def test_damaged_lines_are_left_out_and_the_first_is_named(file, text) -> None:
    first, rest = file.read_bytes().split(b"\n", 1)
    file.write_bytes(b"\n".join([first, text.encode("latin-1"), rest]))
    with pytest.warns(ResultsWarning, match=r"1 damaged lines count as not there, the first is line 2 \("):
        assert len(read_records(file, lambda record: record["score"])) == 3
    append_records(file, {"key": 3})
    with pytest.warns(ResultsWarning, match=r"2 damaged lines count as not there, the first is line 2 \("):
        assert len(read_records(file, lambda record: record["score"])) == 3


def test_other_files_are_refused(tmp_path) -> None:
    (tmp_path / "nodes.csv").write_text("id,label\n1,a\n", encoding="utf-8")
    with sqlite3.connect(tmp_path / "results.db") as store:
        store.execute("CREATE TABLE runs (key)")
    store.close()
    for name, remedy in (
        ("nodes.csv", "give one of JSON lines"),
        ("results.db", "--export results.jsonl"),
        ("", "give a"),
    ):
        with pytest.raises(InputError, match=remedy):
            read_records(tmp_path / name, dict)


def test_processes_append_at_the_same_time(path) -> None:
    code = (
        "import sys; from gcnsl.runs.results import append_records\n"
        "for number in range(40):\n"
        "    append_records(sys.argv[1], {'of': sys.argv[2], 'number': number, 'long': 'x' * 5000})"
    )
    started = [subprocess.Popen([sys.executable, "-c", code, str(path), of]) for of in "ab"]
    assert [process.wait() for process in started] == [0, 0]
    found = read_records(path, dict)
    assert [[record["number"] for record in found if record["of"] == of] for of in "ab"] == [list(range(40))] * 2


def test_what_stops_a_writer_is_said(file, monkeypatch) -> None:
    monkeypatch.setattr(results, "_LOCK_SECONDS", 0.01)
    with FileLock(file.with_name(".results.jsonl.lock")), pytest.raises(WriteError, match=r"results\.jsonl.*lock"):
        append_records(file, RECORDS[0])

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(WriteError, match=r"results\.jsonl: No space left on device"):
        append_records(file, RECORDS[0])


def test_a_link_stays_one_and_shares_the_lock(file) -> None:
    link = file.parent.parent / "link.jsonl"
    link.symlink_to(file)
    append_records(link, RECORDS[0])
    assert link.is_symlink()
    assert len(read_records(file, dict)) == 4
    assert not list(link.parent.glob(".link*"))
