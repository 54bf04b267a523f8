import errno
import json
import os
import pickle
from pathlib import Path

import pytest
import safetensors.torch
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import gcnsl.storage
from gcnsl import InputError
from gcnsl.errors import WriteError
from gcnsl.storage import CONFIG, FORMAT, TENSORS, check_place, load_folder, pack_strings, save_folder, unpack_strings

MODEL_CONFIG = {"rounds": 2, "epsilon": 0.1 + 0.2, "classes": ["é", "b"], "nested": {"10": None, "9": True}}
MODEL_TENSORS = {
    "weight": torch.randn(3, 4, generator=torch.Generator().manual_seed(0)),
    "half": torch.tensor([1.5, -2.0], dtype=torch.bfloat16),
    "start": torch.arange(5),
    "empty": torch.empty(0, 2),
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
    assert sorted(entry.name for entry in folder.iterdir()) == [CONFIG, TENSORS]
    assert [entry.name for entry in folder.parent.iterdir()] == ["model"], "nothing is left beside it"


def test_plain_values_come_back_as_json_has_them(tmp_path) -> None:
    save_folder(tmp_path / "a" / "b", {10: (1, 2), 9: float("inf")}, {})
    assert load_folder(tmp_path / "a" / "b") == ({"10": [1, 2], "9": float("inf")}, {})


def test_tensors_that_share_memory_or_are_views_can_be_saved(tmp_path) -> None:
    weight = torch.arange(6.0).reshape(2, 3)
    save_folder(tmp_path / "model", {}, {"a": weight, "b": weight, "t": weight.T})
    _, tensors = load_folder(tmp_path / "model")
    assert tensors["a"].equal(weight)
    assert tensors["b"].equal(weight)
    assert tensors["t"].equal(weight.T)


@pytest.fixture(scope="module")
def other_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bytes") / "model"
    save_folder(folder, MODEL_CONFIG, MODEL_TENSORS)
    return folder


@settings(max_examples=500)
@given(st.sampled_from([CONFIG, TENSORS]), st.floats(0, 1, exclude_max=True), st.integers(1, 255))
def test_a_changed_byte_is_noticed_or_changes_nothing(other_folder, name, where, change) -> None:
    content = (other_folder / name).read_bytes()
    changed = bytearray(content)
    changed[int(where * len(content))] ^= change
    (other_folder / name).write_bytes(changed)
    refusal, loaded = None, None
    try:
        loaded = load_folder(other_folder)
    except InputError as error:
        refusal = str(error)
    (other_folder / name).write_bytes(content)
    assert str(other_folder) in refusal if refusal else same(loaded)


@pytest.mark.parametrize("name", [CONFIG, TENSORS])
@pytest.mark.parametrize("share", [0, 0.3, 0.99])
def test_a_truncated_file_is_refused(folder, name, share) -> None:
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[: int(share * len(content))])
    with pytest.raises(InputError, match=rf"{folder} is not a complete model: {name} .*; restore it from a copy"):
        load_folder(folder)


@pytest.mark.parametrize("name", [CONFIG, TENSORS])
def test_a_missing_file_is_named(folder, name) -> None:
    (folder / name).unlink()
    with pytest.raises(InputError, match=f"{folder} is not a complete model: it has no file {name}"):
        load_folder(folder)


def test_what_is_no_model_is_refused(folder, tmp_path) -> None:
    with pytest.raises(InputError, match="nothing is not a folder: give the folder of a saved model"):
        load_folder(tmp_path / "nothing")
    for foreign in ("[]", '{"kind": "other"}', "{}"):
        (folder / CONFIG).write_text(foreign)
        with pytest.raises(InputError, match="is not the folder of a gcnsl model: give the folder of a saved model"):
            load_folder(folder)


@pytest.mark.parametrize(
    ("number", "remedy"), [(FORMAT + 1, "install a newer gcnsl"), (FORMAT - 1, "train and save the model again")]
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


def test_other_tensors_than_listed_are_refused(folder) -> None:
    rewrite(folder, tensors=sorted({*MODEL_TENSORS, "extra"} - {"empty"}))
    with pytest.raises(InputError, match=r"the tensors in .* are not those listed in config\.json"):
        load_folder(folder)
    rewrite(folder, tensors=...)
    with pytest.raises(InputError, match=r"config\.json is incomplete"):
        load_folder(folder)


def test_a_pickle_in_place_of_the_tensors_is_not_run(folder, tmp_path) -> None:
    class Harm:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "harm"),)

    content = pickle.dumps(Harm())
    (folder / TENSORS).write_bytes(content)
    rewrite(folder, tensors_sha256=gcnsl.storage.hashlib.sha256(content).hexdigest())
    with pytest.raises(InputError, match=f"{TENSORS} can't be read"):
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


def test_a_damaged_model_can_be_written_over(folder) -> None:
    (folder / TENSORS).write_bytes(b"")
    save_folder(folder, MODEL_CONFIG, MODEL_TENSORS)
    assert same(load_folder(folder))


@pytest.mark.parametrize("failing", [1, 2])
def test_a_crash_while_replacing_leaves_the_old_model(folder, monkeypatch, failing) -> None:
    calls, rename = [], os.rename

    def crash(*names) -> None:
        calls.append(names)
        if len(calls) == failing:
            raise OSError("the plug was pulled")
        rename(*names)

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", crash)
        with pytest.raises(OSError, match="plug"):
            save_folder(folder, {"new": 1}, {})
    assert [entry.name for entry in folder.parent.iterdir()] == ["model"], "nothing is left behind"
    assert same(load_folder(folder))


def test_what_a_killed_process_left_is_settled_by_the_next(folder) -> None:
    folder.rename(folder.with_name(".model.old"))
    folder.with_name(".model.new").mkdir()
    assert same(load_folder(folder))
    save_folder(folder, {"new": 1}, {})
    assert [entry.name for entry in folder.parent.iterdir()] == ["model"]


def test_a_full_disk_is_named_and_leaves_the_old_model(folder, monkeypatch) -> None:
    def full(*_) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(WriteError, match=r"model can't be written \(No space left on device\): free the disk"):
            save_folder(folder, {"new": 1}, {})
    assert [entry.name for entry in folder.parent.iterdir()] == ["model"]
    assert same(load_folder(folder))


@given(st.lists(st.text(st.characters())))
def test_strings_come_back(texts) -> None:
    content, ends = pack_strings(texts)
    assert content.dtype == torch.uint8
    assert len(ends) == len(texts) + 1
    stored = safetensors.torch.load(safetensors.torch.save({"content": content, "ends": ends}))
    assert unpack_strings(stored["content"], stored["ends"]) == texts


def test_a_mounted_disk_is_refused_before_any_work(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(Path, "is_mount", lambda path: path == tmp_path)
    with pytest.raises(InputError, match="is a mounted disk, which can't be renamed: give a folder inside of it"):
        check_place(tmp_path)
