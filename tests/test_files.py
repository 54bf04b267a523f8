import os
import subprocess
import sys

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load

from gcnsl.errors import WriteError
from gcnsl.files import (
    LEFT_AFTER,
    atomic_write,
    check_writable,
    digest,
    tensor_bytes,
)


def test_a_file_is_whole_whenever_its_writer_is_killed(tmp_path) -> None:
    path, size = tmp_path / "file", 2**22
    path.write_bytes(b"0" * size)
    script = (
        "import itertools, sys; from gcnsl.files import atomic_write\n"
        f"for i in itertools.count(): atomic_write(sys.argv[1], bytes([48 + i % 10]) * {size}); print(i, flush=True)"
    )
    for wait in (1, 2, 4):
        with subprocess.Popen([sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE) as writer:
            for _ in range(wait):
                writer.stdout.readline()
            writer.kill()
        content = path.read_bytes()
        assert len(content) == size
        assert len(set(content)) == 1
    for left in tmp_path.glob(".file.*"):  # if there is any
        os.utime(left, (0, 0))
    atomic_write(path, "later")
    assert list(tmp_path.iterdir()) == [path]


def test_many_processes_may_write_the_same_file(tmp_path) -> None:
    script = (
        "import sys; from gcnsl.files import atomic_write\n"
        "for _ in range(50): atomic_write(sys.argv[1], sys.argv[2] * 2**18)"
    )
    path = tmp_path / "new" / "file"
    writers = [
        subprocess.Popen([sys.executable, "-c", script, path, letter], stderr=subprocess.PIPE, text=True)
        for letter in "abcd"
    ]
    while any(writer.poll() is None for writer in writers):
        if path.exists():
            content = path.read_text()
            assert len(content) == 2**18
            assert len(set(content)) == 1
    assert [writer.communicate()[1] for writer in writers] == [""] * 4
    assert [entry.name for entry in path.parent.iterdir()] == ["file"]


def test_what_others_are_writing_stays(tmp_path) -> None:
    for name, age in ((".file.new.part", 0), (".file.old.part", LEFT_AFTER + 60), (".other.old.part", LEFT_AFTER + 60)):
        (tmp_path / name).mkdir()
        then = (tmp_path / name).stat().st_mtime - age
        os.utime(tmp_path / name, (then, then))
    atomic_write(tmp_path / "file", "")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [".file.new.part", ".other.old.part", "file"]


def test_a_link_stays_a_link(tmp_path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "file")
    for content in ("first", "second"):
        atomic_write(tmp_path / "link", content)
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "file").read_text() == content


def test_a_failed_write_leaves_the_old_content(tmp_path, monkeypatch) -> None:
    path = tmp_path / "file"
    atomic_write(path, "old")

    def fail(*_) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(WriteError, match=r"^cannot write .*file: the disk is full$"):
        atomic_write(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path], "nothing is left behind"


def test_a_file_where_a_folder_is_needed_is_named(tmp_path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(WriteError, match=r"cannot write .*file/new.txt: Not a directory"):
        atomic_write(tmp_path / "file" / "new.txt", "new")
    for path in (tmp_path / "file" / "model", tmp_path / "file" / "deeper" / "model"):
        with pytest.raises(WriteError, match=r"cannot write .*/model: Not a directory"):
            check_writable(path)
    with pytest.raises(WriteError, match=r"cannot write .*: Is a directory"):
        atomic_write(tmp_path, "new")


TENSORS = {"a": torch.arange(6.0), "empty": torch.empty(0, 3), "number": torch.tensor(7), "mask": torch.tensor([True])}
STRANGE = {"no columns": torch.empty(5, 0), "of rows": torch.empty(0, 3).T, "of a view": torch.ones(4, 3)[:, 3:]}
"""Empty tensors that torch can't show as bytes."""


def test_a_digest_is_that_of_names_types_shapes_and_bits_not_of_order_or_memory() -> None:
    same = {name: TENSORS[name] for name in reversed(TENSORS)}
    same["a"] = torch.arange(12.0)[::2] / 2
    assert digest(same, {"x": "1", "y": "2"}) == digest(TENSORS, {"y": "2", "x": "1"})
    assert digest(STRANGE) == digest({name: torch.empty(tensor.shape) for name, tensor in STRANGE.items()})
    a = TENSORS["a"]
    others = [{**TENSORS, "a": other} for other in (a + 1, a.reshape(2, 3), a.double())]
    others += [{**TENSORS, "empty": torch.empty(0, 2)}, {"b": a, **{n: TENSORS[n] for n in TENSORS if n != "a"}}]
    assert len({digest(TENSORS), *map(digest, others)}) == 6
    texts = ({}, {"a": "b"}, {"a": ""}, {"ab": ""}, {"a": "b", "c": ""})
    assert len({digest({}, some) for some in texts}) == 5


KINDS = [
    torch.float64, torch.float32, torch.float16, torch.bfloat16,
    torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool,
]  # fmt: skip


@given(st.lists(st.tuples(st.sampled_from(KINDS), st.lists(st.integers(0, 3), max_size=3)), max_size=8))
def test_tensors_come_back(parts) -> None:
    generator = torch.Generator().manual_seed(0)
    tensors = {
        f"tensor {number}": torch.randint(0, 2, shape, generator=generator).to(kind)
        for number, (kind, shape) in enumerate(parts)
    }
    parsed = load(tensor_bytes(tensors))
    assert parsed.keys() == tensors.keys()
    assert all(parsed[name].dtype == tensor.dtype and parsed[name].equal(tensor) for name, tensor in tensors.items())
