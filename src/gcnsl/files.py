"""Files that are written completely or not at all, places that one process has to itself, and checksums."""

import contextlib
import hashlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from gcnsl.errors import InputError, WriteError

if TYPE_CHECKING:
    from torch import Tensor


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


def write_tensors(path: Path, tensors: "Mapping[str, Tensor]", metadata: dict[str, str] | None = None) -> None:
    """Write a safetensors file and wait until it is on the disk. Tensors on the CPU are not copied for this."""
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    own: dict[str, Tensor] = {}
    places: set[int] = set()
    for name, tensor in tensors.items():
        part = tensor.detach().cpu().contiguous()
        place = part.untyped_storage().data_ptr()
        own[name] = part.clone() if place in places else part  # the format has no place for shared memory
        places.add(place)
    try:
        save_file(own, path, metadata)
    except SafetensorError as error:
        raise OSError(str(error)) from error
    with path.open("rb") as file:
        os.fsync(file.fileno())


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
    import torch

    total = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu().contiguous()
        total.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        total.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    for name, text in sorted((texts or {}).items()):
        total.update(f"{name} {len(text)} {text}\n".encode())
    return total.hexdigest()
