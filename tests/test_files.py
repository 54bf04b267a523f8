import hashlib
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.torch import load_file

from gcnsl.errors import InputError, WriteError
from gcnsl.files import atomic_write, digest, file_digest, reserved, write_tensors


def test_atomic_write_makes_folders_and_leaves_no_other_file(tmp_path) -> None:
    path = tmp_path / "a" / "b.txt"
    atomic_write(path, "é")
    atomic_write(path, b"second")
    assert path.read_bytes() == b"second"
    assert [entry.name for entry in path.parent.iterdir()] == ["b.txt"]


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


def test_a_failed_write_leaves_the_old_content(tmp_path, monkeypatch) -> None:
    path = tmp_path / "file"
    atomic_write(path, "old")

    def fail(*_) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(WriteError, match=r"file can't be written \(the disk is full\): free the disk"):
        atomic_write(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path], "nothing is left behind"


def test_a_file_where_a_folder_is_needed_is_named(tmp_path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(WriteError, match=r"file/new.txt can't be written"):
        atomic_write(tmp_path / "file" / "new.txt", "new")
    with pytest.raises(WriteError, match="file/model can't be written"), reserved(tmp_path / "file" / "model"):
        pass


HOLDER = (
    "import sys, time; from pathlib import Path; from gcnsl.files import reserved\n"
    "with reserved(Path(sys.argv[1])): print('held', flush=True); time.sleep(600)"
)


def test_a_place_is_reserved_until_its_process_has_ended(tmp_path) -> None:
    path = tmp_path / "new" / "model"
    with subprocess.Popen([sys.executable, "-c", HOLDER, path], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(InputError, match="model is being written by another process: wait"), reserved(path):
            pass
        holder.kill()
    with reserved(path), reserved(path.with_name("other")):
        pass
    assert list(path.parent.iterdir()) == []


TENSORS = {"a": torch.arange(6.0), "empty": torch.empty(0, 3), "number": torch.tensor(7), "mask": torch.tensor([True])}


def test_a_digest_is_that_of_content_not_of_order_or_memory() -> None:
    same = {name: TENSORS[name] for name in reversed(TENSORS)}
    same["a"] = torch.arange(12.0)[::2] / 2
    assert digest(same, {"x": "1", "y": "2"}) == digest(TENSORS, {"y": "2", "x": "1"})
    assert digest(TENSORS, {}) == digest(TENSORS)


@pytest.mark.parametrize(
    "other",
    [
        {**TENSORS, "a": torch.arange(6.0) + 1},
        {**TENSORS, "a": torch.arange(6.0).reshape(2, 3)},
        {**TENSORS, "a": torch.arange(6.0).double()},
        {**TENSORS, "empty": torch.empty(0, 2)},
        {("b" if name == "a" else name): value for name, value in TENSORS.items()},
    ],
)
def test_a_digest_tells_names_types_shapes_and_bits_apart(other) -> None:
    assert digest(other) != digest(TENSORS)


def test_a_digest_tells_strings_apart() -> None:
    assert len({digest({}, texts) for texts in ({}, {"a": "b"}, {"a": ""}, {"ab": ""}, {"a": "b", "c": ""})}) == 5


KINDS = [
    torch.float64, torch.float32, torch.float16, torch.bfloat16,
    torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool,
]  # fmt: skip


@given(st.lists(st.tuples(st.sampled_from(KINDS), st.lists(st.integers(0, 3), max_size=3)), max_size=8))
def test_safetensors_reads_the_tensors_that_are_written(parts) -> None:
    generator = torch.Generator().manual_seed(0)
    tensors = {
        f"tensor {number}": torch.randint(0, 2, shape, generator=generator).to(kind)
        for number, (kind, shape) in enumerate(parts)
    }
    with TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        write_tensors(path, tensors, {"é": '"quoted"'})
        with safe_open(path, framework="pt") as file:
            assert file.metadata() == {"é": '"quoted"'}
            assert sorted(file.keys()) == sorted(tensors)
            for name, tensor in tensors.items():
                found = file.get_tensor(name)
                assert found.dtype == tensor.dtype
                assert found.equal(tensor)
        assert file_digest(path) == hashlib.sha256(path.read_bytes()).hexdigest()


def test_views_and_shared_memory_are_written_as_what_they_show(tmp_path) -> None:
    whole = torch.arange(12.0).reshape(3, 4)
    write_tensors(tmp_path / "file", {"whole": whole, "part": whole[1:, ::2], "turned": whole.T})
    found = load_file(tmp_path / "file")
    assert found["whole"].equal(whole)
    assert found["part"].equal(whole[1:, ::2])
    assert found["turned"].equal(whole.T)
    assert (tmp_path / "file").stat().st_mode == _plain_file(tmp_path).stat().st_mode


def _plain_file(folder: Path) -> Path:
    path = folder / "plain"
    path.write_text("")
    return path
