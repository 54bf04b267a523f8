import errno
import json
import os
import pickle
import random
import subprocess
import sys
import time

import pytest
import safetensors.torch
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gcnsl import InputError
from gcnsl.errors import WriteError
from gcnsl.files import PART, tensor_bytes
from gcnsl.storage import (
    FILE,
    FORMAT,
    KEY,
    check_model,
    check_place,
    checksum,
    load_folder,
    pack_strings,
    save_folder,
    unpack_strings,
)

MODEL_CONFIG = {"rounds": 2, "epsilon": 0.1 + 0.2, "classes": ["é", "b"], "nested": {"10": None, "9": True}}
MODEL_TENSORS = {
    "weight": torch.randn(3, 4, generator=torch.Generator().manual_seed(0)),
    "half": torch.tensor([1.5, -2.0], dtype=torch.bfloat16),
    "start": torch.arange(5),
    "empty": torch.empty(0, 2),
    "no columns": torch.empty(5, 0),
    "number": torch.tensor(7),
}


@pytest.fixture
def folder(tmp_path):
    save_folder(tmp_path / "model", MODEL_CONFIG, MODEL_TENSORS)
    return tmp_path / "model"


def same(loaded) -> bool:
    config, tensors = loaded
    return (
        config == MODEL_CONFIG
        and tensors.keys() == MODEL_TENSORS.keys()
        and all(tensors[k].equal(v) and tensors[k].dtype == v.dtype for k, v in MODEL_TENSORS.items())
    )


def test_a_round_trip_keeps_every_bit(folder) -> None:
    assert same(load_folder(folder))
    assert [entry.name for entry in folder.iterdir()] == [FILE]
    assert [entry.name for entry in folder.parent.iterdir()] == ["model"], "nothing is left beside it"
    before = (folder / FILE).read_bytes()
    save_folder(folder, MODEL_CONFIG, MODEL_TENSORS)
    assert (folder / FILE).read_bytes() == before


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("bytes") / "model"
    save_folder(path, MODEL_CONFIG, MODEL_TENSORS)
    return path


@settings(max_examples=200, deadline=None)
@given(st.floats(0, 1, exclude_max=True), st.integers(1, 255))
def test_a_changed_byte_is_noticed_or_changes_nothing(model, where, change) -> None:
    file = model / FILE
    content = file.read_bytes()
    changed = bytearray(content)
    changed[int(where * len(content))] ^= change
    file.write_bytes(changed)
    try:
        assert same(load_folder(model))
    except InputError as error:
        assert str(model) in str(error)  # noqa: PT017 - it may be raised or not
    finally:
        file.write_bytes(content)


def test_a_missing_file_is_named(folder, tmp_path) -> None:
    (folder / FILE).unlink()
    for read in (load_folder, check_model):
        with pytest.raises(InputError, match="nothing is not a folder: give the folder of a saved model"):
            read(tmp_path / "nothing")
        with pytest.raises(InputError, match=f"{folder} is not a complete model: it has no file {FILE}"):
            read(folder)
    (folder / FILE).mkdir()
    with pytest.raises(InputError, match=f"{folder} is not a complete model: it can't be read"):
        load_folder(folder)


def write(folder, document, tensors=MODEL_TENSORS) -> None:
    """Write a model whose checksum is right, as a forger would."""
    signed = document | {"sha256": checksum(document, tensors)}
    (folder / FILE).write_bytes(tensor_bytes(tensors, {KEY: json.dumps(signed)}))


def test_another_format_has_its_remedy(folder) -> None:
    write(folder, {"format": FORMAT + 1, "gcnsl": "9.1"})
    with pytest.raises(InputError, match=r"written by gcnsl 9\.1 in format 4, but .* format 3: install a newer gcnsl"):
        check_model(folder)


@pytest.mark.parametrize("document", [{}, {"format": FORMAT}, [], 3, {"format": FORMAT, "config": {}, "sha256": "0"}])
def test_metadata_of_others_are_refused(folder, document) -> None:
    (folder / FILE).write_bytes(tensor_bytes(MODEL_TENSORS, {KEY: json.dumps(document)}))
    with pytest.raises(InputError, match="model is not a complete model"):
        load_folder(folder)
    (folder / FILE).write_bytes(tensor_bytes(MODEL_TENSORS))
    with pytest.raises(InputError, match="model is not a complete model"):
        check_model(folder)


def test_a_pickle_in_place_of_the_tensors_is_not_run(folder, tmp_path) -> None:
    class Harm:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "harm"),)

    (folder / FILE).write_bytes(pickle.dumps(Harm()))
    with pytest.raises(InputError, match="it can't be read"):
        load_folder(folder)
    assert not (tmp_path / "harm").exists()


def test_a_model_is_replaced_and_nothing_else(folder, tmp_path) -> None:
    save_folder(folder, {"new": 1}, {})
    assert load_folder(folder) == ({"new": 1}, {})
    with pytest.raises(InputError, match="model exists: allow overwriting"):
        save_folder(folder, {}, {}, overwrite=False)
    (tmp_path / "empty").mkdir()
    save_folder(tmp_path / "empty", {}, {}, overwrite=False)

    (folder / "notes.txt").write_text("mine")
    (tmp_path / "file").write_text("mine")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "config.json").write_text('{"kind": "other"}')
    for place in ("model", "other"):
        with pytest.raises(InputError, match=f"{place} holds something other than a model"):
            save_folder(tmp_path / place, {}, {})
    with pytest.raises(InputError, match="file is a file: give the name of a folder"):
        save_folder(tmp_path / "file", {}, {})
    assert (folder / "notes.txt").read_text() == "mine"


def test_a_model_that_version_0_2_0_saved_is_refused_with_a_remedy_and_stays(tmp_path) -> None:
    (tmp_path / "config.json").write_text('{"kind": "gcnsl-classifier", "format": 2, "gcnsl": "0.2.0"}')
    (tmp_path / "tensors.safetensors").write_bytes(tensor_bytes(MODEL_TENSORS))
    for read in (load_folder, check_model):
        with pytest.raises(InputError, match=r"was saved by gcnsl 0\.2 or older: load it and predict with"):
            read(tmp_path)
    with pytest.raises(InputError, match="holds something other than a model"):
        save_folder(tmp_path, {}, {})
    assert len(list(tmp_path.iterdir())) == 2


def test_a_crash_while_replacing_leaves_the_old_model(folder, monkeypatch) -> None:
    def crash(*_) -> None:
        raise OSError("the plug was pulled")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", crash)
        with pytest.raises(WriteError, match=rf"^cannot write {folder}: the plug was pulled$"):
            save_folder(folder, {"new": 1}, {})
    assert same(load_folder(folder))
    assert [entry.name for entry in folder.iterdir()] == [FILE], "what the crash left is gone"


@pytest.fixture
def full_disk(monkeypatch):
    def full(*_) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)


def test_a_full_disk_leaves_no_new_folder(tmp_path, full_disk) -> None:
    (tmp_path / "empty").mkdir()
    for place in ("model", "new/deeper/model", "empty"):
        with pytest.raises(WriteError, match=rf"cannot write {tmp_path / place}: No space"):
            save_folder(tmp_path / place, {}, {})
    assert list(tmp_path.rglob("*")) == [tmp_path / "empty"]


def test_a_link_stays_a_link(tmp_path) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "target")
    for number in range(3):
        save_folder(link, {"number": number}, MODEL_TENSORS)
        assert link.is_symlink()
        assert load_folder(link)[0] == load_folder(tmp_path / "target")[0] == {"number": number}


SAVER = """
import random, sys, time, torch
from gcnsl.storage import save_folder
for number in range(int(sys.argv[2])):
    size = random.randrange(1, 100_000)
    save_folder(sys.argv[1], {"size": size}, {"weight": torch.full((size,), float(size)), "empty": torch.empty(3, 0)})
    print(number, flush=True)
"""


def saver(folder, number: int) -> subprocess.Popen:
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([sys.executable, "-c", SAVER, folder, str(number)], text=True, **pipes)


def check_whole(folder) -> None:
    config, tensors = load_folder(folder)
    assert tensors["weight"].shape == (config["size"],)
    assert (tensors["weight"] == config["size"]).all()


def test_processes_may_save_in_one_folder_while_others_read(tmp_path) -> None:
    folder, reads = tmp_path / "model", 0
    savers = [saver(folder, 10) for _ in range(3)]
    while any(process.poll() is None for process in savers):
        if reads or (folder / FILE).exists():
            check_whole(folder)
            reads += 1
    assert [process.communicate()[1] for process in savers] == ["", "", ""]
    assert reads > 10
    assert [entry.name for entry in folder.iterdir()] == [FILE]


def test_a_model_is_whole_whenever_its_saver_is_killed(tmp_path) -> None:
    folder, generator = tmp_path / "model", random.Random(0)
    with saver(folder, 1) as first:
        assert first.communicate()[1] == ""
    for _ in range(2):
        with saver(folder, 10_000) as process:
            for _ in range(generator.randrange(1, 5)):
                process.stdout.readline()
            time.sleep(generator.uniform(0, 0.03))
            process.kill()
        check_whole(folder)
        check_place(folder)
    save_folder(folder, MODEL_CONFIG, MODEL_TENSORS)
    assert same(load_folder(folder))
    assert {entry.name for entry in folder.iterdir() if entry.suffix != PART} == {FILE}


@given(st.lists(st.text(st.characters())))
def test_strings_come_back(texts) -> None:
    content, ends = pack_strings(texts)
    assert content.dtype == torch.uint8
    assert len(ends) == len(texts) + 1
    stored = safetensors.torch.load(safetensors.torch.save({"content": content, "ends": ends}))
    assert unpack_strings(stored["content"], stored["ends"]) == texts
