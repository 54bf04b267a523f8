"""Finds, downloads and verifies dataset files.

A file is looked for in ``root``, ``$GCNSL_DATA`` and the user's cache, in this order, and downloaded into the cache if
it is in none of them; it may be gzipped. Its SHA-256 is compared with ``SHA256SUMS`` in this folder before it is used,
so that an altered pickle is never loaded. Every download is logged to the logger ``gcnsl`` with level INFO.

The libraries for downloads are imported only when a file has to be downloaded.
"""

import functools
import gzip
import hashlib
import logging
import os
import re
from collections.abc import Iterable, Iterator
from importlib import resources
from pathlib import Path

from gcnsl.errors import ArgumentError, DownloadError, InputError

LOGGER = logging.getLogger("gcnsl")

DATA_VARIABLE = "GCNSL_DATA"
"""Environment variable with a folder of dataset files, arranged as in ``SHA256SUMS``."""

MIRROR_VARIABLE = "GCNSL_MIRROR"
"""Environment variable with the address of a folder of dataset files, used instead of the original sources."""

_GITHUB = "https://raw.githubusercontent.com"
_GEOM_GCN = f"{_GITHUB}/graphdml-uiuc-jlu/geom-gcn/f1fc0d14b3b019c562737240d06ec83b07d16a8f"
_HETEROPHILOUS = f"{_GITHUB}/yandex-research/heterophilous-graphs/a431395582e929d88271309716bea4fe24ce6318/data/"
_LINKX = f"{_GITHUB}/CUAI/Non-Homophily-Large-Scale/82f8f05c5c3ec16bd5b505cc7ad62ab5e09051e6/data"
UPSTREAM = {
    "planetoid/": f"{_GITHUB}/kimiyoung/planetoid/af6abf468a772cc055bec88c52e4d6f51b7c37e3/data/",
    "geom-gcn/structural_neighborhood/": f"{_GEOM_GCN}/structural_neighborhood/",
    "geom-gcn/": f"{_GEOM_GCN}/new_data/",
    "splits/": f"{_GEOM_GCN}/splits/",
    "heterophilous/": _HETEROPHILOUS,
    "practice/facebook100-": f"{_LINKX}/facebook100/",
    "practice/twitch-": f"{_LINKX}/twitch/",
    "practice/": _HETEROPHILOUS,
}
"""The address, at a fixed commit, that takes the place of the beginning of a path; the first match counts."""
_CREDENTIALS = re.compile(r"//[^/@\s]*@")


@functools.cache
def checksums() -> dict[str, str]:
    """Return the SHA-256 of every dataset file by its path."""
    lines = resources.files("gcnsl.datasets").joinpath("SHA256SUMS").read_text().splitlines()
    return {path: digest for digest, path in (line.split() for line in lines)}


def cache_folder() -> Path:
    """Return the folder for downloads, in the user's cache folder of the operating system."""
    import pooch

    return Path(pooch.os_cache("gcnsl"))


def check_root(root: str | os.PathLike[str] | None) -> None:
    """Check that a folder for dataset files is one."""
    if root is not None and not Path(root).is_dir():
        raise ArgumentError("root", str(root), "is not a folder: give one with dataset files, or leave it out")


def _folders(root: str | os.PathLike[str] | None) -> Iterator[Path]:
    check_root(root)
    yield from (Path(folder) for folder in (root, os.environ.get(DATA_VARIABLE)) if folder)
    yield cache_folder()


def find(path: str, root: str | os.PathLike[str] | None = None) -> Path | None:
    """Return where a dataset file is, plain or gzipped, or ``None`` if it must be downloaded."""
    names = [name for name in (path, f"{path}.gz") if name in checksums()]
    files = (folder / name for folder in _folders(root) for name in names)
    return next((file for file in files if file.is_file()), None)


def fetch(paths: Iterable[str], root: str | os.PathLike[str] | None = None) -> dict[str, bytes]:
    """Return the verified contents of dataset files by their paths in ``SHA256SUMS``, without ``.gz``.

    ``root`` is searched first. Files that are not found are downloaded.
    """
    paths = list(paths)
    missing = [path for path in paths if find(path, root) is None]
    for number, path in enumerate(missing, start=1):
        LOGGER.info("Downloading %s (%d of %d)", path, number, len(missing))
        _download(path, missing)
    contents = {}
    for path in paths:
        found = find(path, root)
        if found is None:
            raise DownloadError(f"{path} was removed while it was being read; try again")
        content = found.read_bytes()
        expected = checksums()[f"{path}.gz" if found.suffix == ".gz" else path]
        actual = hashlib.sha256(content).hexdigest()
        if actual != expected:
            raise InputError(
                f"{found} has been altered: its SHA-256 is {actual[:12]}…, not {expected[:12]}…. It was not loaded. "
                "Delete it, so that it is downloaded again, or restore the original"
            )
        contents[path] = gzip.decompress(content) if found.suffix == ".gz" else content
    return contents


def _download(path: str, missing: list[str]) -> None:
    """Download a file into the cache. Pooch keeps it only if its checksum is right."""
    import pooch
    import requests

    target, checksum = cache_folder() / path, f"sha256:{checksums()[path]}"
    downloader = pooch.HTTPDownloader(timeout=30)
    pooch.get_logger().setLevel("WARNING")  # it would announce the download a second time
    try:
        pooch.retrieve(_address(path), checksum, target.name, target.parent, downloader=downloader)
    except (OSError, ValueError, requests.RequestException) as error:
        address, reason = (_CREDENTIALS.sub("//", str(text)) for text in (_address(path), error))
        raise DownloadError(
            f"can't download {address} ({reason}). Set {DATA_VARIABLE} to a folder with "
            f"{', '.join(missing)}, or {MIRROR_VARIABLE} to the address of a mirror of such a folder"
        ) from None  # the cause would show the credentials


def _address(path: str) -> str:
    mirror = os.environ.get(MIRROR_VARIABLE)
    if mirror:
        return f"{mirror.rstrip('/')}/{path}"
    beginning = next(beginning for beginning in UPSTREAM if path.startswith(beginning))
    return UPSTREAM[beginning] + path.removeprefix(beginning)
