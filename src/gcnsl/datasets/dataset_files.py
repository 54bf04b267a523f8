"""Dataset files: where they are, whence they come, and that they are what they should be.

A file is looked for under ``root``, ``$GCNSL_DATA`` and the user's cache, in that order, and downloaded into the cache
if it is in none of them. Its SHA-256 is compared with ``SHA256SUMS`` beside this module before anything else sees a
byte of it, so an altered pickle is refused before it can be unpickled. A file may also lie gzipped beside its name.

What downloads need is imported when it is first needed: a machine that has the files needs none of it.
"""

import functools
import gzip
import hashlib
import os
from collections.abc import Iterable, Iterator
from importlib import resources
from pathlib import Path

from tqdm.auto import tqdm

from gcnsl.errors import DownloadError, InputError

DATA_VARIABLE = "GCNSL_DATA"
"""Environment variable: a folder with dataset files, laid out as in ``SHA256SUMS``."""

MIRROR_VARIABLE = "GCNSL_MIRROR"
"""Environment variable: the address of a folder with that layout, to download from instead of the upstream ones."""

_GITHUB = "https://raw.githubusercontent.com"
_GEOM_GCN = f"{_GITHUB}/graphdml-uiuc-jlu/geom-gcn/f1fc0d14b3b019c562737240d06ec83b07d16a8f"
UPSTREAM = {
    "planetoid/": f"{_GITHUB}/kimiyoung/planetoid/af6abf468a772cc055bec88c52e4d6f51b7c37e3/data/",
    "geom-gcn/structural_neighborhood/": f"{_GEOM_GCN}/structural_neighborhood/",
    "geom-gcn/": f"{_GEOM_GCN}/new_data/",
    "splits/": f"{_GEOM_GCN}/splits/",
    "heterophilous/": f"{_GITHUB}/yandex-research/heterophilous-graphs/a431395582e929d88271309716bea4fe24ce6318/data/",
}
"""Which upstream folder, at a fixed commit, holds the files below a folder of ours (the first match counts)."""


@functools.cache
def checksums() -> dict[str, str]:
    """SHA-256 of every dataset file by its path, from the list that is part of the package."""
    lines = resources.files("gcnsl.datasets").joinpath("SHA256SUMS").read_text().splitlines()
    return {path: digest for digest, path in (line.split() for line in lines)}


def cache_folder() -> Path:
    """Where downloads are kept: the user's cache folder, as the operating system defines it."""
    import pooch

    return Path(pooch.os_cache("gcnsl"))


def folders(root: str | os.PathLike[str] | None = None) -> Iterator[Path]:
    """The folders that are searched, in order; the cache's name is asked for only when its turn comes."""
    if root is not None and not Path(root).is_dir():
        raise InputError(f"root({str(root)!r}) is not a folder: give one that holds dataset files, or leave it out")
    named = [root, os.environ.get(DATA_VARIABLE)]
    yield from (Path(folder) for folder in named if folder)
    yield cache_folder()


def folder_of(path: str, root: str | os.PathLike[str] | None = None) -> Path | None:
    """The first of the folders that holds a dataset file, itself or gzipped, or ``None``."""
    for folder in folders(root):
        if any(name in checksums() and (folder / name).is_file() for name in (path, f"{path}.gz")):
            return folder
    return None


def find(path: str, root: str | os.PathLike[str] | None = None) -> Path | None:
    """Where a dataset file lies on this machine, itself or gzipped, or ``None``."""
    folder = folder_of(path, root)
    if folder is None:
        return None
    return folder / path if (folder / path).is_file() else folder / f"{path}.gz"


def fetch(paths: Iterable[str], root: str | os.PathLike[str] | None = None) -> dict[str, bytes]:
    """The contents of dataset files, downloaded where necessary, every sum checked.

    Args:
        paths: As in ``SHA256SUMS``, e.g. ``"planetoid/ind.cora.x"``; a gzipped file goes by its plain name.
        root: A folder to look in first.

    Raises:
        InputError: If a file on this machine does not have the sum it should have.
        DownloadError: If a file is on no folder of this machine and can't be had.
    """
    paths = list(paths)
    missing = [path for path in paths if find(path, root) is None]
    with tqdm(missing, desc="Downloading", unit="file", disable=not missing) as progress:
        for path in progress:
            _download(path, missing)
    return {path: _read(path, root) for path in paths}


def _read(path: str, root: str | os.PathLike[str] | None) -> bytes:
    found = find(path, root)
    if found is None:
        raise DownloadError(f"{path} vanished while it was being read; try again")
    content = found.read_bytes()
    expected = checksums()[f"{path}.gz" if found.suffix == ".gz" else path]
    actual = hashlib.sha256(content).hexdigest()
    if actual != expected:
        raise InputError(
            f"{found} is not the file it should be: its SHA-256 is {actual}, not {expected}. It was not opened. "
            "Delete it, so that it is fetched again, or restore the original"
        )
    return gzip.decompress(content) if found.suffix == ".gz" else content


def _download(path: str, missing: list[str]) -> None:
    """Fetch one file into the cache; pooch checks its sum and puts it in place only when it is right."""
    import pooch
    import requests

    target = cache_folder() / path
    pooch.get_logger().setLevel("WARNING")  # one progress bar says enough
    try:
        pooch.retrieve(
            _address(path),
            f"sha256:{checksums()[path]}",
            target.name,
            target.parent,
            downloader=pooch.HTTPDownloader(timeout=30),
        )
    except (OSError, ValueError, requests.RequestException) as error:
        raise DownloadError(
            f"can't download {_address(path)} ({error}). Set {DATA_VARIABLE} to a folder that holds "
            f"{', '.join(missing)}, or {MIRROR_VARIABLE} to the address of a mirror with the same layout"
        ) from error


def _address(path: str) -> str:
    mirror = os.environ.get(MIRROR_VARIABLE)
    if mirror:
        return f"{mirror.rstrip('/')}/{path}"
    folder = next(folder for folder in UPSTREAM if path.startswith(folder))
    return UPSTREAM[folder] + path.removeprefix(folder)
