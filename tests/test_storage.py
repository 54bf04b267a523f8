import errno
import hashlib
import json
import os
import pickle
import random
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import safetensors.torch
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import gcnsl.storage
from gcnsl import InputError, NodeClassifier
from gcnsl.errors import WriteError
from gcnsl.storage import (
    CONFIG,
    FORMAT,
    LOCK,
    READABLE,
    TENSORS_OF_FORMAT_2,
    check_place,
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
CHECKSUM = re.compile(r"tensors-([0-9a-f]{16})\.safetensors")


def tensors_file(folder):
    (found,) = folder.glob("tensors*")
    return found


def entries(folder) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir() if entry.name != LOCK)


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
    assert entries(folder) == [CONFIG, tensors_file(folder).name]
    assert (
        CHECKSUM.fullmatch(tensors_file(folder).name)[1] in json.loads((folder / CONFIG).read_text())["tensors_sha256"]
    )
    assert [entry.name for entry in folder.parent.iterdir()] == ["model"], "nothing is left beside it"


@pytest.fixture(scope="module")
def other_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bytes") / "model"
    save_folder(folder, MODEL_CONFIG, MODEL_TENSORS)
    return folder


@settings(max_examples=200)
@given(st.sampled_from([CONFIG, "tensors"]), st.floats(0, 1, exclude_max=True), st.integers(1, 255))
def test_a_changed_byte_is_noticed_or_changes_nothing(other_folder, name, where, change) -> None:
    file = other_folder / name if name == CONFIG else tensors_file(other_folder)
    content = file.read_bytes()
    changed = bytearray(content)
    changed[int(where * len(content))] ^= change
    file.write_bytes(changed)
    refusal, loaded = None, None
    try:
        loaded = load_folder(other_folder)
    except InputError as error:
        refusal = str(error)
    file.write_bytes(content)
    assert str(other_folder) in refusal if refusal else same(loaded)


@pytest.mark.parametrize("name", [CONFIG, "tensors"])
def test_a_missing_file_is_named(folder, name) -> None:
    file = folder / name if name == CONFIG else tensors_file(folder)
    file.unlink()
    with pytest.raises(InputError, match=f"{folder} is not a complete model: it has no file {file.name}"):
        load_folder(folder)
    file.mkdir()
    with pytest.raises(InputError, match=f"{folder} is not a complete model: .*{file.name}"):
        load_folder(folder)


def test_what_is_no_model_is_refused(folder, tmp_path) -> None:
    with pytest.raises(InputError, match="nothing is not a folder: give the folder of a saved model"):
        load_folder(tmp_path / "nothing")
    for foreign in ("[]", '{"kind": "other"}', "{}"):
        (folder / CONFIG).write_text(foreign)
        with pytest.raises(InputError, match="is not the folder of a gcnsl model: give the folder of a saved model"):
            load_folder(folder)


@pytest.mark.parametrize(
    ("number", "remedy"), [(FORMAT + 1, "install a newer gcnsl"), (min(READABLE) - 1, "train and save the model again")]
)
def test_another_format_has_its_remedy(folder, number, remedy) -> None:
    document = json.loads((folder / CONFIG).read_text()) | {"format": number, "gcnsl": "9.1"}
    (folder / CONFIG).write_text(json.dumps(document))
    with pytest.raises(InputError, match=rf"written by gcnsl 9\.1 in format {number}, but .*: {remedy}"):
        load_folder(folder)


def rewrite(folder, **changes) -> None:
    """Change the configuration so that its own sum is right, as a forger would."""
    document = {k: v for k, v in json.loads((folder / CONFIG).read_text()).items() if k != "sha256"} | changes
    document = {k: v for k, v in document.items() if v is not ...}
    (folder / CONFIG).write_text(json.dumps(document | {"sha256": gcnsl.storage._checksum(document)}))


def test_a_pickle_in_place_of_the_tensors_is_not_run(folder, tmp_path) -> None:
    class Harm:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "harm"),)

    content = pickle.dumps(Harm())
    tensors_file(folder).write_bytes(content)
    rewrite(folder, tensors_sha256=hashlib.sha256(content).hexdigest())
    with pytest.raises(InputError, match=f"{tensors_file(folder).name} can't be read"):
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
    (tmp_path / "other" / CONFIG).write_text('{"kind": "other"}')
    for place in ("model", "other"):
        with pytest.raises(InputError, match=f"{place} holds something other than a model"):
            save_folder(tmp_path / place, {}, {})
    with pytest.raises(InputError, match="file is a file: give the name of a folder"):
        save_folder(tmp_path / "file", {}, {})
    assert (folder / "notes.txt").read_text() == "mine"


def as_version_0_2_0_wrote_it(folder) -> None:
    tensors_file(folder).rename(folder / TENSORS_OF_FORMAT_2)
    (folder / LOCK).unlink()
    rewrite(folder, format=2, tensors_file=...)


def test_a_model_of_version_0_2_0_is_read_and_replaced(folder) -> None:
    as_version_0_2_0_wrote_it(folder)
    assert entries(folder) == [CONFIG, TENSORS_OF_FORMAT_2]
    assert same(load_folder(folder))
    save_folder(folder, {"new": 1}, {})
    assert load_folder(folder) == ({"new": 1}, {})
    assert TENSORS_OF_FORMAT_2 not in entries(folder)


def test_a_classifier_that_version_0_2_0_saved_predicts_the_same() -> None:
    saved = Path(__file__).parent / "saved_by_0_2_0"
    loaded, table = NodeClassifier.load(saved / "gcn-sl-cc"), pd.read_csv(saved / "predictions.csv")
    assert list(loaded.predict()) == table["predicted"].tolist()
    np.testing.assert_allclose(loaded.predict_proba().max(axis=1), table["probability"], atol=1e-6)


@pytest.mark.parametrize("failing", [1, 2])
def test_a_crash_while_replacing_leaves_the_old_model(folder, monkeypatch, failing) -> None:
    calls, replace = [], os.replace

    def crash(*names) -> None:
        calls.append(names)
        if len(calls) == failing:
            raise OSError("the plug was pulled")
        replace(*names)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", crash)
        with pytest.raises(WriteError, match=rf"^cannot write {folder}: the plug was pulled$"):
            save_folder(folder, {"new": 1}, {})
    assert same(load_folder(folder))
    save_folder(folder, {"new": 1}, {})
    assert load_folder(folder) == ({"new": 1}, {})
    assert len(entries(folder)) == 2, "what the crash left is gone"


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
        if reads or (folder / CONFIG).exists():
            check_whole(folder)
            reads += 1
    assert [process.communicate()[1] for process in savers] == ["", "", ""]
    assert reads > 10
    assert entries(folder) == [CONFIG, tensors_file(folder).name]


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
    assert entries(folder) == [CONFIG, tensors_file(folder).name], "nothing of the killed ones is left"


@given(st.lists(st.text(st.characters())))
def test_strings_come_back(texts) -> None:
    content, ends = pack_strings(texts)
    assert content.dtype == torch.uint8
    assert len(ends) == len(texts) + 1
    stored = safetensors.torch.load(safetensors.torch.save({"content": content, "ends": ends}))
    assert unpack_strings(stored["content"], stored["ends"]) == texts
