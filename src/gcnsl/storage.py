"""Models on disk: a folder with ``config.json`` and ``tensors-….safetensors``. No pickles, so loading runs no code.

``config.json`` has the configuration, the format, the version, the name of the other file, and the SHA-256 of that file
and of its own content, so that damage to either is noticed. The tensors' file is named by its content, and
``config.json`` is replaced once that file is on the disk: a folder has a whole model at every moment. Savers exclude
each other by a lock; readers need none.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock
from safetensors import SafetensorError

from gcnsl.errors import InputError
from gcnsl.files import PART, atomic_write, new_folder, tensor_bytes, writing
from gcnsl.version import __version__

if TYPE_CHECKING:
    from torch import Tensor

KIND = "gcnsl-classifier"
FORMAT, READABLE = 3, (2, 3)
"""Format 1, of version 0.1.0, could only store GCN-SL; in format 2, of version 0.2.0, the tensors have a fixed name."""
CONFIG, TENSORS_OF_FORMAT_2 = "config.json", "tensors.safetensors"
LOCK, _LOCK_SECONDS = ".lock", 600
_TENSORS = re.compile(r"tensors-[0-9a-f]{16}\.safetensors")
_ATTEMPTS = 100
"""So often a reader begins anew because another process has just replaced the model."""


def save_folder(
    path: str | os.PathLike[str], config: Mapping[str, Any], tensors: Mapping[str, Tensor], *, overwrite: bool = True
) -> None:
    """Write the folder of a model, or replace the model in it.

    Of several processes that save in the same folder, the last one wins. A folder with anything other than a model is
    left untouched. If it can't be written, nothing is left behind, and an older model is as it was.

    Args:
        path: The folder, or a link to it; missing parents are created.
        config: Plain values, for JSON.
        tensors: Tensors by name, on any device.
        overwrite: Whether an older model may be replaced.
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
    with writing(given), new_folder(path), FileLock(path / LOCK, timeout=_LOCK_SECONDS):
        check_place(given, overwrite=overwrite)  # another process may have saved a model by now
        try:
            content = tensor_bytes(tensors)
            checksum = hashlib.sha256(content).hexdigest()
            document |= {"tensors_file": f"tensors-{checksum[:16]}.safetensors", "tensors_sha256": checksum}
            atomic_write(path / document["tensors_file"], content)
            atomic_write(path / CONFIG, json.dumps(document | {"sha256": _checksum(document)}, indent=1))
        finally:
            _remove_what_no_model_needs(path)


def _remove_what_no_model_needs(path: Path) -> None:
    """Remove the tensors of an older model or of one that could not be saved, and what killed processes have left."""
    needed = (_document(path) or {}).get("tensors_file", TENSORS_OF_FORMAT_2)
    for file in path.glob("tensors*.safetensors"):
        if file.name != needed:
            with suppress(OSError):  # the model is saved, so it does no harm
                file.unlink()
    for left in path.glob(f".*{PART}"):
        shutil.rmtree(left, ignore_errors=True)
    if [entry.name for entry in path.iterdir()] == [LOCK]:
        (path / LOCK).unlink()


def check_place(path: str | os.PathLike[str], *, overwrite: bool = True) -> None:
    """Raise the error that :func:`save_folder` would raise for this path because of what is there."""
    path = Path(path)
    if not path.exists():
        return
    if not path.is_dir():
        raise InputError(f"{path} is a file: give the name of a folder for the model")
    names = {entry.name for entry in path.iterdir()}
    others = {name for name in names - {LOCK} if not (name.endswith(PART) or _TENSORS.fullmatch(name))}
    if others and not (others <= {CONFIG, TENSORS_OF_FORMAT_2} and _document(path)):
        raise InputError(f"{path} holds something other than a model: give another folder")
    if CONFIG in names and not overwrite:
        raise InputError(f"{path} exists: allow overwriting, or give another folder")


def check_model(path: str | os.PathLike[str]) -> None:
    """Raise the error that :func:`load_folder` would raise, as far as ``config.json`` tells; torch is not loaded."""
    _read_config(Path(os.path.abspath(path)))


def load_folder(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The configuration and the tensors, on the CPU, of a saved model; checked before anything is used."""
    from safetensors.torch import load

    path = Path(os.path.abspath(path))
    for _ in range(_ATTEMPTS):
        document = _read_config(path)
        name = document["tensors_file"]
        try:
            content = (path / name).read_bytes()
        except FileNotFoundError:  # another process may have replaced the model since
            continue
        except OSError as error:
            raise _damaged(path, f"{name} can't be read ({error})") from error
        if hashlib.sha256(content).hexdigest() != document["tensors_sha256"]:
            raise _damaged(path, f"{name} is not the file that was saved")
        try:
            # Results of linear algebra may depend on where in memory a tensor begins, which clone() aligns.
            return document["config"], {name: tensor.clone() for name, tensor in load(content).items()}
        except SafetensorError as error:
            raise _damaged(path, f"{name} can't be read ({error})") from error
    raise _damaged(path, f"it has no file {document['tensors_file']}")


def pack_strings(strings: Sequence[str]) -> tuple[Tensor, Tensor]:
    """Strings as two tensors: the concatenated UTF-8 bytes (uint8), and the offsets of the strings (n + 1)."""
    import torch

    encoded = [text.encode("utf-8", "surrogatepass") for text in strings]
    ends = torch.tensor([0, *map(len, encoded)]).cumsum(0)
    return torch.frombuffer(bytearray(b"".join(encoded)) or bytearray(1), dtype=torch.uint8)[: int(ends[-1])], ends


def unpack_strings(content: Tensor, ends: Tensor) -> list[str]:
    """The strings that were given to :func:`pack_strings`."""
    raw, places = content.numpy().tobytes(), ends.tolist()
    return [raw[a:b].decode("utf-8", "surrogatepass") for a, b in pairwise(places)]


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


def _document(path: Path) -> dict[str, Any] | None:
    """The content of ``config.json``, if the folder is one of ours, even if it is damaged."""
    try:
        document = json.loads((path / CONFIG).read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) and document.get("kind") == KIND else None
