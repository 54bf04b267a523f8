"""Atomic writes, checksums, and the content of safetensors files."""

import contextlib
import glob
import hashlib
import os
import shutil
import tempfile
import time
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gcnsl.errors import WriteError

if TYPE_CHECKING:
    from torch import Tensor

BAD_ZIP = (zipfile.BadZipFile, zlib.error)
"""What reading a damaged npz file raises, besides the errors of Python's own types."""
PART, LEFT_AFTER = ".part", 3600.0
"""Suffix of the folders in which files are being written; older ones than this (seconds) are of processes that died."""


def atomic_write(path: str | os.PathLike[str], content: bytes | str) -> None:
    """Write a file, and its folders, atomically: after a crash it has either the old content or the new one.

    Of several processes that write the same file, the last one wins. Devices and pipes are written to, links followed.
    After a :class:`WriteError`, nothing is left behind.
    """
    path, content = Path(path), content.encode() if isinstance(content, str) else content
    target = Path(os.path.realpath(path))
    with writing(path), new_folder(target.parent):
        if path.is_char_device() or path.is_fifo():
            path.write_bytes(content)
            return
        remove_leftovers(target, seconds=LEFT_AFTER)
        # In a folder of its own, the file gets the permissions that the umask gives.
        with tempfile.TemporaryDirectory(prefix=f".{target.name}.", suffix=PART, dir=target.parent) as folder:
            temporary = Path(folder, "file")
            temporary.write_bytes(content)
            sync(temporary)
            os.replace(temporary, target)
        sync(target.parent)


def remove_leftovers(path: Path, *, seconds: float = 0.0) -> None:
    """Remove what killed processes have left of a file, if it is older than so many seconds."""
    for left in path.parent.glob(f".{glob.escape(path.name)}.*{PART}"):
        with contextlib.suppress(FileNotFoundError):  # another process was faster
            if left.stat().st_mtime <= time.time() - seconds:
                shutil.rmtree(left, ignore_errors=True)


@contextlib.contextmanager
def new_folder(path: Path) -> Iterator[None]:
    """Make a folder and its parents for this block, and remove those of them that are empty in the end."""
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
    """Turn an ``OSError`` in this block into a :class:`WriteError` that names the path and the reason."""
    try:
        yield
    except OSError as error:
        cause: Any = error.__cause__ if isinstance(error, WriteError) else error
        raise WriteError(f"cannot write {path}: {cause.strerror or cause}") from cause


def check_writable(path: Path) -> None:
    """Raise a :class:`WriteError` if nothing can be written in a folder, which need not exist."""
    with writing(path):
        nearest = next(folder for folder in (path, *path.parents) if folder.exists())
        with tempfile.TemporaryFile(dir=nearest) as file:
            file.write(bytes(4096))  # a full disk takes empty files


def tensor_bytes(tensors: "Mapping[str, Tensor]", metadata: Mapping[str, str] | None = None) -> bytes:
    """The content of a safetensors file; tensors may be on any device, be views, and share memory."""
    import torch
    from safetensors.torch import save

    own = {name: each.detach().cpu().clone(memory_format=torch.contiguous_format) for name, each in tensors.items()}
    return save(own, None if metadata is None else dict(metadata))


def below(part: str, tensors: "Mapping[str, Tensor]") -> "dict[str, Tensor]":
    """The tensors whose names begin with ``part.``, by the rest of their names."""
    return {name.removeprefix(f"{part}."): value for name, value in tensors.items() if name.startswith(f"{part}.")}


def sync(path: Path) -> None:
    """Flush a file, or the names in a folder, to the disk."""
    if os.name == "posix":  # other systems can't open a folder
        opened = os.open(path, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def digest(tensors: "Mapping[str, Tensor]", texts: Mapping[str, str] | None = None) -> str:
    """SHA-256 of tensors (names, types, shapes and bits) and of strings with their names."""
    import torch

    total = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        total.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        if tensor.numel():  # torch can't view some of the others as bytes
            total.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    for name, text in sorted((texts or {}).items()):
        total.update(f"{name} {len(text)} {text}\n".encode())
    return total.hexdigest()
