"""Files that are written completely or not at all, and checksums."""

import contextlib
import glob
import hashlib
import os
import re
import shutil
import tempfile
import time
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from gcnsl.errors import WriteError

if TYPE_CHECKING:
    from torch import Tensor

BAD_ZIP = (zipfile.BadZipFile, zlib.error)
"""What reading a damaged npz file raises, besides the errors of Python's own types."""
LEFT_AFTER = 3600.0
"""Seconds after which a temporary folder must be that of a killed process, as nobody writes a file for so long."""


def atomic_write(path: str | os.PathLike[str], content: bytes | str) -> None:
    """Write a file so that, after a crash at any moment, it holds either the old content or the new one.

    Missing folders are created; strings are encoded in UTF-8. Any number of processes may write the same file at the
    same time: the last one wins. A device or a pipe is written to, not replaced.

    Raises:
        WriteError: If the file can't be written. Nothing is left behind.
    """
    path, content = Path(path), content.encode() if isinstance(content, str) else content
    if path.is_char_device() or path.is_fifo():
        with writing(path):
            path.write_bytes(content)
        return
    with replacing(path) as temporary:
        temporary.write_bytes(content)
        sync(temporary)


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """The temporary file to write in this block, which then takes the place of the file, as in :func:`atomic_write`.

    It is alone in a folder beside the file, so that a library may have temporary files of its own. If the path is a
    link, it stays one.
    """
    target = Path(os.path.realpath(path))
    with writing(path), new_folder(target.parent):
        remove_leftovers(target, seconds=LEFT_AFTER)
        with tempfile.TemporaryDirectory(prefix=f".{target.name}.", suffix=".part", dir=target.parent) as folder:
            yield Path(folder, "file")
            os.replace(Path(folder, "file"), target)
        sync(target.parent)


def remove_leftovers(path: Path, *, seconds: float = 0.0) -> None:
    """Remove what processes that were killed while they wrote a file have left, unless it is younger than so long."""
    for left in path.parent.glob(f".{glob.escape(path.name)}.*.part"):
        with contextlib.suppress(FileNotFoundError):  # another process was faster
            if left.stat().st_mtime <= time.time() - seconds:
                shutil.rmtree(left, ignore_errors=True)


@contextlib.contextmanager
def new_folder(path: Path) -> Iterator[None]:
    """Make a folder and its parents for this block; those that were not there and are empty in the end are removed."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    try:
        if missing:
            path.mkdir(parents=True, exist_ok=True)
        yield
    finally:
        for folder in missing:
            with contextlib.suppress(OSError):
                folder.rmdir()


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Say which file or folder could not be written, and why, if an ``OSError`` is raised in this block."""
    try:
        yield
    except WriteError:
        raise
    except OSError as error:
        raise WriteError(f"cannot write {path}: {error.strerror or error}") from error


def check_writable(path: Path) -> None:
    """Raise a WriteError if nothing can be written in a folder, which need not be there yet."""
    with writing(path):
        nearest = next(folder for folder in (path, *path.parents) if folder.exists())
        with tempfile.TemporaryFile(dir=nearest) as file:
            file.write(bytes(4096))  # a full disk takes empty files


def save_tensors(path: Path, tensors: "Mapping[str, Tensor]", metadata: Mapping[str, str] | None = None) -> None:
    """Write a safetensors file, and wait until it is on the disk; use it inside of :func:`replacing`.

    Tensors may be on any device, be views, and share memory. The file has the permissions that new files have.
    """
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    path.touch()
    mode = path.stat().st_mode  # the library's file is for its owner alone
    try:
        save_file(unshared(tensors), path, None if metadata is None else dict(metadata))
    except SafetensorError as error:
        number = re.search(r"(?:os error|code:) (\d+)", str(error))
        raise OSError(int(number[1]), os.strerror(int(number[1]))) if number else OSError(str(error)) from error
    path.chmod(mode)
    sync(path)


def unshared(tensors: "Mapping[str, Tensor]") -> "dict[str, Tensor]":
    """The tensors as safetensors wants them: on the CPU, contiguous, and no two in the same memory."""
    found: dict[str, Tensor] = {}
    places = set[int]()
    for name, tensor in tensors.items():
        plain = tensor.detach().cpu().contiguous()
        found[name] = plain.clone() if plain.untyped_storage().data_ptr() in places else plain
        places.add(found[name].untyped_storage().data_ptr())
    return found


def below(part: str, tensors: "Mapping[str, Tensor]") -> "dict[str, Tensor]":
    """The tensors whose names begin with ``part.``, by the rest of their names."""
    return {name.removeprefix(f"{part}."): value for name, value in tensors.items() if name.startswith(f"{part}.")}


def file_digest(path: Path) -> str:
    """SHA-256 of a file, read in parts."""
    total = hashlib.sha256()
    with path.open("rb") as file:
        while part := file.read(1 << 20):
            total.update(part)
    return total.hexdigest()


def sync(path: Path) -> None:
    """Wait until a file is on the disk, or the names in a folder; a power cut could lose them otherwise."""
    if os.name != "posix" and path.is_dir():  # other systems can't open a folder, and don't need it
        return
    opened = os.open(path, os.O_RDONLY if os.name == "posix" else os.O_RDWR)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


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


def _bytes_of(tensor: "Tensor") -> memoryview:
    """The bytes of a tensor, without a copy if it is contiguous and on the CPU."""
    import torch

    if not tensor.numel():  # torch can't view some of these as bytes
        return memoryview(b"")
    return tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data
