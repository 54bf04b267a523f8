"""Files that are there whole or not at all, whatever happens while they are written."""

import os
from pathlib import Path


def atomic_write(path: str | os.PathLike[str], content: bytes | str) -> None:
    """Write a file so that, after a crash at any moment, its name holds the old content or the new, never a part.

    The content goes to a temporary name beside it, onto the disk, and only then to its own name. A temporary file that
    a killed process left behind is written over by the next attempt. Missing folders are made; text is UTF-8.
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
    """Wait until the names in a folder are on the disk: a new name can otherwise be lost with its content safe."""
    if os.name != "posix":  # elsewhere a folder can't be opened, and needs no such care
        return
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
