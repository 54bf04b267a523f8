"""Files that are written completely or not at all, places that one process has to itself, and checksums."""

import contextlib
import hashlib
import json
import os
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gcnsl.errors import InputError, WriteError

if TYPE_CHECKING:
    from torch import Tensor

BAD_ZIP = (zipfile.BadZipFile, zlib.error)
"""What reading a damaged npz file raises, besides the errors of Python's own types."""

_SAFETENSORS_TYPES = {
    "float64": "F64",
    "float32": "F32",
    "float16": "F16",
    "bfloat16": "BF16",
    "int64": "I64",
    "int32": "I32",
    "int16": "I16",
    "int8": "I8",
    "uint8": "U8",
    "bool": "BOOL",
}
"""What the format calls the types of torch."""


def atomic_write(path: str | os.PathLike[str], content: bytes | str) -> None:
    """Write a file so that, after a crash at any moment, it holds either the old content or the new one.

    Missing folders are created; strings are encoded in UTF-8.

    Raises:
        WriteError: If the file can't be written. Nothing is left behind.
    """
    with replacing(Path(path)) as temporary:
        write_through(temporary, content)


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """The temporary file to write in this block, which then takes the place of the file, as in :func:`atomic_write`.

    It is in the same folder. If a killed process leaves it behind, the next write replaces it.
    """
    temporary = path.with_name(f".{path.name}.part")
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield temporary
            os.replace(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        sync_folder(path.parent)


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Say which file or folder could not be written, and why, if an ``OSError`` is raised in this block."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or error
        raise WriteError(
            f"{path} can't be written ({reason}): free the disk, or give a place that allows it"
        ) from error


@contextlib.contextmanager
def reserved(path: Path) -> Iterator[None]:
    """Reserve a place while this block runs, by a lock on a hidden file beside it.

    Other processes that reserve the place get an error. The operating system releases the lock of a killed process.

    Raises:
        InputError: If another process has reserved the place.
        WriteError: If nothing can be written there.
    """
    if os.name != "posix":  # other systems have no such locks
        yield
        return
    import fcntl

    lock = path.with_name(f".{path.name}.lock")
    with writing(path):
        lock.parent.mkdir(parents=True, exist_ok=True)
        file = lock.open("w")
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            message = f"{path} is being written by another process: wait until it has ended, or give another place"
            raise InputError(message) from None
        try:
            yield
        finally:
            lock.unlink(missing_ok=True)


def write_through(path: Path, content: bytes | str) -> None:
    """Write a file and wait until it is on the disk."""
    with path.open("wb") as file:
        file.write(content.encode() if isinstance(content, str) else content)
        file.flush()
        os.fsync(file.fileno())


def write_tensors(path: Path, tensors: "Mapping[str, Tensor]", metadata: Mapping[str, str] | None = None) -> None:
    """Write a safetensors file and wait until it is on the disk.

    The package safetensors reads what this writes. Its own writer copies tensors in some versions, makes the file
    readable for its owner alone, and leaves a temporary file behind if it is killed.
    """
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    ordered = sorted(tensors, key=lambda name: -tensors[name].element_size())  # so that every entry is aligned
    end = 0
    for name in ordered:
        tensor = tensors[name]
        begin, end = end, end + tensor.numel() * tensor.element_size()
        kind = _SAFETENSORS_TYPES[str(tensor.dtype).removeprefix("torch.")]
        header[name] = {"dtype": kind, "shape": list(tensor.shape), "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name in ordered:
            file.write(_bytes_of(tensors[name]))
        file.flush()
        os.fsync(file.fileno())


def _bytes_of(tensor: "Tensor") -> memoryview:
    """The bytes of a tensor, without a copy if it is contiguous and on the CPU."""
    import torch

    return tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data


def file_digest(path: Path) -> str:
    """SHA-256 of a file, read in parts."""
    total = hashlib.sha256()
    with path.open("rb") as file:
        while part := file.read(1 << 20):
            total.update(part)
    return total.hexdigest()


def sync_folder(path: Path) -> None:
    """Wait until the file names of a folder are on the disk; otherwise a power cut can lose a new file's name."""
    if os.name != "posix":  # other systems can't open a folder, and don't need it
        return
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def digest(tensors: "Mapping[str, Tensor]", texts: Mapping[str, str] | None = None) -> str:
    """SHA-256 of tensors (names, types, shapes and bits) and of strings with their names."""
    total = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name]
        total.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        total.update(_bytes_of(tensor))
    for name, text in sorted((texts or {}).items()):
        total.update(f"{name} {len(text)} {text}\n".encode())
    return total.hexdigest()
