import pytest

from gcnsl import InputError
from gcnsl.experiments.result_exports import export_lines, import_lines, read_results
from gcnsl.experiments.result_store import ResultStore

from .cases import result, spec


def test_an_export_is_small_ordered_and_comes_back(tmp_path) -> None:
    many = [result(run, test=run / 100, of=spec(run, dataset=name)) for name in ("texas", "cora") for run in range(10)]
    failed = result(0, status="failed", of=spec(0, method="mlp"))
    elsewhere = result(10, device="NVIDIA H200", history={"test_accuracy": [0.25]})
    with ResultStore(tmp_path / "results.db") as store:
        store.add(*many, failed, elsewhere)
        stored = store.results()
    path = tmp_path / "results.jsonl"
    export_lines(stored, path)
    text = path.read_text()
    assert len(text.splitlines()) == 4
    assert len(text) < 150 * len(stored)
    assert sorted(import_lines(path), key=lambda r: r.spec.key) == sorted(stored, key=lambda r: r.spec.key)
    assert len(read_results(path)) == 22
    export_lines(reversed(list(import_lines(path))), tmp_path / "again.jsonl")
    assert (tmp_path / "again.jsonl").read_text() == text


def test_no_file_and_no_text_are_named(tmp_path) -> None:
    (tmp_path / "x.jsonl").write_bytes(b"\xff\xfe")
    for path in (tmp_path, tmp_path / "absent.jsonl", tmp_path / "x.jsonl"):
        with pytest.raises(InputError, match=f"{path} can't be read .*: the file must be an export of results"):
            list(import_lines(path))


LINES = (
    "nonsense",
    "[]",
    "{}",
    "[" * 5000,
    '{"device":"","version":"","runs":[{"run":0}]}',
    '{"device":"","version":"","runs":7}',
    '{"device":1,"version":"","method":"mlp","dataset":"a","split":"random","seed":0,"options":{},"runs":[{"run":0,"status":"ok"}]}',
    '{"device":"","version":"","method":"mlp","dataset":"a","split":"random","seed":0,"options":{},"runs":[{"run":"0","status":"ok"}]}',
)


@pytest.mark.parametrize("line", LINES)
def test_a_foreign_line_is_named(tmp_path, line) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(f"{line}\n")
    with pytest.raises(InputError, match=r"x.jsonl, line 1 holds no runs"):
        list(import_lines(path))
