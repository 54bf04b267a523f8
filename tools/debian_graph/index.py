"""Reads Debian's package index: the ``Packages`` file and the ``Release`` file that lists its checksum.

Both are in the deb822 format: stanzas of ``Field: value`` lines, separated by blank lines; a line that starts with a
space continues the previous value.
"""

import gzip
import lzma
import re
import shutil
import subprocess
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from gcnsl.errors import InputError

RELATIONS = ("pre-depends", "depends", "recommends")
"""The fields that say what a package needs. Suggests is left out because it is too weak a relation."""

LZ4_PROGRAMS = (("lz4", "-dc"), ("/usr/lib/apt/apt-helper", "cat-file"))
"""Programs that decompress lz4, which Python cannot do by itself; apt keeps its copies of the index in that format."""

PACKAGE_NAME = re.compile(r"\s*([a-z0-9][a-z0-9+.-]*)")


class Package(NamedTuple):
    """The fields of a binary package that the graph needs."""

    name: str
    source: str
    section: str
    summary: str
    needs: tuple[tuple[str, ...], ...]
    """One tuple of alternatives per requirement: ``a, b | c`` becomes ``(("a",), ("b", "c"))``."""
    provides: tuple[str, ...]


class Release(NamedTuple):
    """A release of the archive: its title, its date, and the paths of its files by SHA-256."""

    title: str
    date: str
    paths: Mapping[str, str]


def read_unpacked(path: Path) -> bytes:
    """Read a file, and decompress it if its name ends in ``.gz``, ``.xz`` or ``.lz4``."""
    if not path.is_file():
        raise InputError(f"{path} does not exist: download it from a Debian mirror (--help says where)")
    try:
        if path.suffix == ".gz":
            return gzip.decompress(path.read_bytes())
        if path.suffix == ".xz":
            return lzma.decompress(path.read_bytes())
        if path.suffix == ".lz4":
            return _unpack_lz4(path)
    except (OSError, EOFError, zlib.error, lzma.LZMAError, subprocess.CalledProcessError) as error:
        raise InputError(f"{path} cannot be decompressed ({error}): download it again") from error
    return path.read_bytes()


def _unpack_lz4(path: Path) -> bytes:
    for program, option in LZ4_PROGRAMS:
        if found := shutil.which(program):
            return subprocess.run([found, option, str(path)], check=True, capture_output=True).stdout
    raise InputError(f"{path} can only be decompressed by lz4 or apt-helper: install lz4, or give the .xz or .gz file")


def parse_index(text: str) -> Iterator[Package]:
    """Yield the packages of a ``Packages`` file.

    Version bounds ``(>= 1)`` and qualifiers (``:any``, ``[amd64]``, ``<!nocheck>``) are dropped. A package without a
    Source field is its own source. The section ``contrib/games`` is read as ``games``.
    """
    for fields in _stanzas(text):
        name = fields["package"]
        yield Package(
            name=name,
            source=fields.get("source", name).split()[0],
            section=fields.get("section", "").rpartition("/")[2],
            summary=fields.get("description", "").partition("\n")[0],
            needs=tuple(
                tuple(_names(clause.split("|")))
                for relation in RELATIONS
                for clause in fields.get(relation, "").split(",")
                if clause.strip()
            ),
            provides=tuple(_names(fields.get("provides", "").split(","))),
        )


def _stanzas(text: str) -> Iterator[dict[str, str]]:
    for stanza in filter(str.strip, text.split("\n\n")):
        fields: dict[str, str] = {}
        name = ""
        for line in stanza.strip("\n").split("\n"):
            if line[:1].isspace() and name:
                fields[name] += "\n" + line
            else:
                name, _, value = line.partition(":")
                name = name.lower()
                fields[name] = value.strip()
        if not fields.get("package"):
            raise InputError(
                f"INDEX has a stanza without a Package field ({stanza[:40]!r} …): give a Debian Packages file"
            )
        yield fields


def _names(relations: Iterable[str]) -> Iterator[str]:
    for relation in relations:
        if match := PACKAGE_NAME.match(relation):
            yield match[1]


def dependencies(packages: Mapping[str, Package]) -> dict[str, set[str]]:
    """The packages that each package needs, except those built from the same source.

    Of several alternatives, the first that can be resolved counts, as in apt. A name is resolved to the package of that
    name, else to the only package that provides it; a name with several providers is not resolved.
    """
    providers: dict[str, set[str]] = defaultdict(set)
    for package in packages.values():
        for virtual in package.provides:
            providers[virtual].add(package.name)
    resolved = {virtual: min(names) for virtual, names in providers.items() if len(names) == 1}
    resolved |= {name: name for name in packages}

    needs: dict[str, set[str]] = {}
    for package in packages.values():
        chosen = (next((resolved[a] for a in clause if a in resolved), None) for clause in package.needs)
        needs[package.name] = {name for name in chosen if name and packages[name].source != package.source}
    return needs


def parse_release(text: str) -> Release:
    """Parse a ``Release`` or ``InRelease`` file. Its signature is not checked."""
    fields = dict(re.findall(r"^(Origin|Version|Codename|Date): (.+)$", text, re.MULTILINE))
    paths = dict(re.findall(r"^ ([0-9a-f]{64}) +\d+ (\S+)$", text, re.MULTILINE))
    missing = sorted({"Origin", "Codename", "Date"} - fields.keys()) or ([] if paths else ["SHA256"])
    if missing:
        raise InputError(f"--release has no field {missing[0]}: give a Release or InRelease file of a Debian mirror")
    title = " ".join(filter(None, (fields["Origin"], fields.get("Version"), f"({fields['Codename']})")))
    return Release(title, fields["Date"], paths)
