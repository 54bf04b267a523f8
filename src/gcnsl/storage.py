"""Models on disk: a folder with ``config.json`` and ``tensors.safetensors``. No pickles, so loading runs no code.

``config.json`` holds the configuration, the format, the package's version, and the SHA-256 of the other file and of its
own content. Damage to either file is therefore noticed before anything is used.
"""

import hashlib
import itertools
import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from gcnsl.errors import InputError
from gcnsl.files import file_digest, sync_folder, write_tensors, write_through, writing
from gcnsl.version import __version__

KIND = "gcnsl-classifier"
FORMAT = 2
"""Format 1, of version 0.1.0, could only store GCN-SL."""
CONFIG, TENSORS = "config.json", "tensors.safetensors"
T = TypeVar("T")


def save_folder(
    path: str | os.PathLike[str], config: Mapping[str, Any], tensors: Mapping[str, Tensor], *, overwrite: bool = True
) -> None:
    """Write a model's folder completely or not at all.

    The folder is written under a temporary name and renamed once it is on the disk; an older model is deleted last. A
    folder that holds anything other than a model is left untouched.

    Args:
        path: The folder. Missing parent folders are created.
        config: Plain values, for JSON.
        tensors: Tensors by name, on any device.
        overwrite: Whether an older model may be replaced.

    Raises:
        InputError: If the path is a file or a folder with other content.
        WriteError: If the folder can't be written. Nothing is left behind, and an older model is as it was.
    """
    path = _settled(path)
    check_place(path, overwrite=overwrite)
    document = {
        "kind": KIND,
        "format": FORMAT,
        "gcnsl": __version__,
        "config": json.loads(json.dumps(config)),  # as it will be read: tuples become lists, keys strings
        "tensors": sorted(tensors),
    }
    new, old = _beside(path, "new"), _beside(path, "old")
    for left_by_a_killed_process in (new, old):
        shutil.rmtree(left_by_a_killed_process, ignore_errors=True)
    with writing(path):
        try:
            new.mkdir(parents=True)
            write_tensors(new / TENSORS, tensors)
            document["tensors_sha256"] = file_digest(new / TENSORS)
            write_through(new / CONFIG, json.dumps(document | {"sha256": _checksum(document)}, indent=1))
            sync_folder(new)
            if path.exists():
                os.rename(path, old)
            os.rename(new, path)
            sync_folder(path.parent)
        except BaseException:
            shutil.rmtree(new, ignore_errors=True)
            _settled(path)
            raise
    shutil.rmtree(old, ignore_errors=True)


def check_place(path: str | os.PathLike[str], *, overwrite: bool = True) -> None:
    """Raise the error that :func:`save_folder` would raise for this path because of what is there."""
    path = Path(path)
    if not path.exists():
        return
    if not path.is_dir():
        raise InputError(f"{path} is a file: give the name of a folder for the model")
    if path.is_mount():
        raise InputError(f"{path} is a mounted disk, which can't be renamed: give a folder inside of it")
    names = {entry.name for entry in path.iterdir()}
    if not names:
        return
    if not overwrite:
        raise InputError(f"{path} exists: allow overwriting, or give another folder")
    if not names <= {CONFIG, TENSORS} or not _looks_like_a_model(path):
        raise InputError(f"{path} holds something other than a model: give another folder")


def load_folder(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Read what :func:`save_folder` wrote: the configuration and the tensors, on the CPU.

    Raises:
        InputError: If a file is missing, damaged or in another format.
    """
    path = _settled(path)
    if not path.is_dir():
        raise InputError(f"{path} is not a folder: give the folder of a saved model")
    document = _read_config(path)
    if _found(path, TENSORS, file_digest) != document["tensors_sha256"]:
        raise _damaged(path, f"{TENSORS} is not the file that was saved")
    try:
        # Copies have the alignment of other tensors. Without it, products can round differently.
        tensors = {name: tensor.clone() for name, tensor in safetensors.torch.load_file(path / TENSORS).items()}
    except (SafetensorError, ValueError, KeyError) as error:
        raise _damaged(path, f"{TENSORS} can't be read ({error})") from error
    if sorted(tensors) != document["tensors"]:
        raise _damaged(path, f"the tensors in {TENSORS} are not those listed in {CONFIG}")
    return document["config"], tensors


def pack_strings(strings: Sequence[str]) -> tuple[Tensor, Tensor]:
    """Strings as two tensors: the concatenated UTF-8 bytes (uint8), and the offsets of the strings (n + 1)."""
    encoded = [text.encode("utf-8", "surrogatepass") for text in strings]
    ends = torch.tensor([0, *map(len, encoded)]).cumsum(0)
    return torch.frombuffer(bytearray(b"".join(encoded)) or bytearray(1), dtype=torch.uint8)[: int(ends[-1])], ends


def unpack_strings(content: Tensor, ends: Tensor) -> list[str]:
    """The strings that were given to :func:`pack_strings`."""
    raw, places = content.numpy().tobytes(), ends.tolist()
    return [raw[a:b].decode("utf-8", "surrogatepass") for a, b in itertools.pairwise(places)]


def _read_config(path: Path) -> dict[str, Any]:
    content = _found(path, CONFIG, Path.read_bytes)
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise _damaged(path, f"{CONFIG} is not JSON ({error})") from error
    if not isinstance(document, dict) or document.get("kind") != KIND:
        raise InputError(f"{path} is not the folder of a gcnsl model: give the folder of a saved model")
    if isinstance(document.get("format"), int) and document["format"] != FORMAT:
        older = document["format"] < FORMAT
        remedy = "train and save the model again" if older else "install a newer gcnsl"
        raise InputError(
            f"{path} was written by gcnsl {document.get('gcnsl')} in format {document['format']}, but gcnsl "
            f"{__version__} reads format {FORMAT}: {remedy}"
        )
    if document.pop("sha256", None) != _checksum(document):
        raise _damaged(path, f"{CONFIG} is not the file that was saved")
    if not {"format", "config", "tensors", "tensors_sha256"} <= document.keys():
        raise _damaged(path, f"{CONFIG} is incomplete")
    return document


def _found(path: Path, name: str, read: Callable[[Path], T]) -> T:
    """What ``read`` returns of a file of the folder."""
    try:
        return read(path / name)
    except (FileNotFoundError, IsADirectoryError) as error:
        raise _damaged(path, f"it has no file {name}") from error


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


def _beside(path: Path, what: str) -> Path:
    return path.with_name(f".{path.name}.{what}")


def _settled(path: str | os.PathLike[str]) -> Path:
    """The absolute path. If a process was killed between the two renames, the older model is put back first."""
    path = Path(os.path.abspath(path))
    old = _beside(path, "old")
    if not path.exists() and old.exists():
        os.rename(old, path)
    return path
