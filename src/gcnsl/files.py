"""Files that are written completely or not at all, and checksums."""

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


def atomic_write(path: str | os.PathLike[str], content: bytes | str) -> None:
    """Write a file so that, after a crash at any moment, it holds either the old content or the new one.

    The content is written to a temporary file in the same folder, which is then renamed. If a killed process leaves a
    temporary file behind, the next write replaces it. Missing folders are created; strings are encoded in UTF-8.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.part")
    write_through(temporary, content)
    os.replace(temporary, path)
    sync_folder(path.parent)


def write_through(path: Path, content: bytes | str) -> None:
    """Write a file and wait until it is on the disk."""
    with path.open("wb") as file:
        file.write(content.encode() if isinstance(content, str) else content)
        file.flush()
        os.fsync(file.fileno())


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
