"""Models on disk: a folder with ``config.json`` and ``tensors-….safetensors``. No pickles, so loading runs no code.

``config.json`` holds the configuration, the format, the package's version, the name of the other file, and the SHA-256
of that file and of its own content. Damage to either file is therefore noticed before anything is used.

The name of the tensors' file is unique for its content, and ``config.json`` is replaced once that file is on the disk.
So a folder holds a whole model at every moment: the older one until then, and the newer one from then on. Savers
exclude each other by a lock in the folder; readers need none.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock

from gcnsl.errors import InputError
from gcnsl.files import file_digest, new_folder, save_tensors, sync, writing
from gcnsl.version import __version__

if TYPE_CHECKING:
    from torch import Tensor

KIND = "gcnsl-classifier"
FORMAT, READABLE = 3, (2, 3)
"""Format 1, of version 0.1.0, could only store GCN-SL; in format 2, of version 0.2.0, the tensors have a fixed name."""
CONFIG, TENSORS_OF_FORMAT_2 = "config.json", "tensors.safetensors"
LOCK, UNFINISHED = ".lock", ".saving"
"""The lock, which stays, and the folder of files that are being written."""
_TENSORS = re.compile(r"tensors-[0-9a-f]{16}\.safetensors")
_LOCK_SECONDS = 600
_ATTEMPTS = 100
"""So often a reader begins anew because another process has just replaced the model."""


def save_folder(
    path: str | os.PathLike[str], config: Mapping[str, Any], tensors: Mapping[str, Tensor], *, overwrite: bool = True
) -> None:
    """Write a model's folder; an older model in it is replaced at once, when the new one is on the disk.

    If several processes save in the same folder, the last one wins. A folder that holds anything other than a model is
    left untouched.

    Args:
        path: The folder, or a link to it. Missing parent folders are created.
        config: Plain values, for JSON.
        tensors: Tensors by name, on any device.
        overwrite: Whether an older model may be replaced.

    Raises:
        InputError: If the path is a file or a folder with other content.
        WriteError: If the folder can't be written. Nothing is left behind, and an older model is as it was.
    """
    given, path = Path(path), Path(os.path.realpath(path))
    check_place(given, overwrite=overwrite)
    document = {
        "kind": KIND,
        "format": FORMAT,
        "gcnsl": __version__,
        "config": json.loads(json.dumps(config)),  # as it will be read: tuples become lists, keys strings
        "tensors": sorted(tensors),
    }
    with writing(given), new_folder(path), _lock(path):
        check_place(given, overwrite=overwrite)  # another process may have saved a model by now
        unfinished = path / UNFINISHED
        shutil.rmtree(unfinished, ignore_errors=True)  # of a killed process
        try:
            unfinished.mkdir()
            name = _write(unfinished, document, tensors)
            os.replace(unfinished / name, path / name)
            sync(path)
            os.replace(unfinished / CONFIG, path / CONFIG)
            sync(path)
            for older in set(path.glob("tensors*.safetensors")) - {path / name}:
                with suppress(OSError):  # the model is saved, so it does no harm
                    older.unlink()
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
            if [entry.name for entry in path.iterdir()] == [LOCK]:  # nothing was saved
                (path / LOCK).unlink()


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Exclude other savers from a folder."""
    for further in reversed(range(_ATTEMPTS)):
        path.mkdir(parents=True, exist_ok=True)
        try:
            lock = FileLock(path / LOCK, timeout=_LOCK_SECONDS).acquire()
            break
        except FileNotFoundError:  # another process has removed the folder, as it was new and could not be written
            if not further:
                raise
    with lock:
        yield


def _write(folder: Path, document: dict[str, Any], tensors: Mapping[str, Tensor]) -> str:
    """Write both files of a model, wait until they are on the disk, and return the name of that with the tensors."""
    save_tensors(folder / "tensors", tensors)
    checksum = file_digest(folder / "tensors")
    name = f"tensors-{checksum[:16]}.safetensors"
    os.rename(folder / "tensors", folder / name)
    document |= {"tensors_file": name, "tensors_sha256": checksum}
    text = json.dumps(document | {"sha256": _checksum(document)}, indent=1)
    (folder / CONFIG).write_text(text, encoding="utf-8")
    sync(folder / CONFIG)
    return name


def check_place(path: str | os.PathLike[str], *, overwrite: bool = True) -> None:
    """Raise the error that :func:`save_folder` would raise for this path because of what is there."""
    path = Path(path)
    if not path.exists():
        return
    if not path.is_dir():
        raise InputError(f"{path} is a file: give the name of a folder for the model")
    names = {entry.name for entry in path.iterdir()} - {LOCK, UNFINISHED}
    others = {name for name in names if not _TENSORS.fullmatch(name)}
    if others and not (others <= {CONFIG, TENSORS_OF_FORMAT_2} and _looks_like_a_model(path)):
        raise InputError(f"{path} holds something other than a model: give another folder")
    if CONFIG in names and not overwrite:
        raise InputError(f"{path} exists: allow overwriting, or give another folder")


def check_model(path: str | os.PathLike[str]) -> None:
    """Raise the error that :func:`load_folder` would raise, as far as ``config.json`` tells; torch is not loaded."""
    _read_config(Path(os.path.abspath(path)))


def load_folder(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Read what :func:`save_folder` wrote: the configuration and the tensors, on the CPU.

    Raises:
        InputError: If a file is missing, damaged or in another format.
    """
    path = Path(os.path.abspath(path))
    for _ in range(_ATTEMPTS):
        document = _read_config(path)
        with suppress(FileNotFoundError):  # another process may have replaced the model since
            return document["config"], _read_tensors(path, document)
    raise _damaged(path, f"it has no file {document['tensors_file']}")


def _read_tensors(path: Path, document: dict[str, Any]) -> dict[str, Tensor]:
    """The tensors that a model's configuration names.

    Raises:
        FileNotFoundError: If there is no such file.
        InputError: If it is damaged.
    """
    from safetensors import SafetensorError, safe_open

    name = document["tensors_file"]
    try:
        with safe_open(path / name, framework="pt") as file:  # from here on it can be read even if it is removed
            checksum = file_digest(path / name)
            # Copies have the alignment of other tensors. Without it, products can round differently.
            tensors = {key: file.get_tensor(key).clone() for key in file.keys()}  # noqa: SIM118 - it is no mapping
    except (SafetensorError, OSError, RuntimeError, ValueError, KeyError) as error:
        if isinstance(error, FileNotFoundError) or "No such file" in str(error):  # torch opens it a second time
            raise FileNotFoundError(name) from error
        raise _damaged(path, f"{name} can't be read ({error})") from error
    if checksum != document["tensors_sha256"]:
        raise _damaged(path, f"{name} is not the file that was saved")
    return tensors


def pack_strings(strings: Sequence[str]) -> tuple[Tensor, Tensor]:
    """Strings as two tensors: the concatenated UTF-8 bytes (uint8), and the offsets of the strings (n + 1)."""
    import torch

    encoded = [text.encode("utf-8", "surrogatepass") for text in strings]
    ends = torch.tensor([0, *map(len, encoded)]).cumsum(0)
    return torch.frombuffer(bytearray(b"".join(encoded)) or bytearray(1), dtype=torch.uint8)[: int(ends[-1])], ends


def unpack_strings(content: Tensor, ends: Tensor) -> list[str]:
    """The strings that were given to :func:`pack_strings`."""
    raw, places = content.numpy().tobytes(), ends.tolist()
    return [raw[a:b].decode("utf-8", "surrogatepass") for a, b in itertools.pairwise(places)]


def _read_config(path: Path) -> dict[str, Any]:
    if not path.is_dir():
        raise InputError(f"{path} is not a folder: give the folder of a saved model")
    try:
        document = json.loads((path / CONFIG).read_bytes())
    except (FileNotFoundError, IsADirectoryError) as error:
        raise _damaged(path, f"it has no file {CONFIG}") from error
    except (ValueError, RecursionError) as error:
        raise _damaged(path, f"{CONFIG} is not JSON ({error})") from error
    if not isinstance(document, dict) or document.get("kind") != KIND:
        raise InputError(f"{path} is not the folder of a gcnsl model: give the folder of a saved model")
    number = document.get("format")
    if isinstance(number, int) and number not in READABLE:
        remedy = "train and save the model again" if number < FORMAT else "install a newer gcnsl"
        raise InputError(
            f"{path} was written by gcnsl {document.get('gcnsl')} in format {number}, but gcnsl {__version__} reads "
            f"format {FORMAT}: {remedy}"
        )
    if document.pop("sha256", None) != _checksum(document):
        raise _damaged(path, f"{CONFIG} is not the file that was saved")
    if number == 2:
        document["tensors_file"] = TENSORS_OF_FORMAT_2
    return document


def _checksum(document: Mapping[str, Any]) -> str:
    """SHA-256 of the content, independent of its layout."""
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def _damaged(path: Path, why: str) -> InputError:
    return InputError(f"{path} is not a complete model: {why}; restore it from a copy, or train and save it again")


def _looks_like_a_model(path: Path) -> bool:
    """Whether the folder is one of ours, even if it is damaged."""
    try:
        document = json.loads((path / CONFIG).read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(document, dict) and document.get("kind") == KIND
