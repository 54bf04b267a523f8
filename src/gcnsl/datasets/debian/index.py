"""Debian's package index: what a ``Packages`` file says about each package, and the ``Release`` file beside it.

Both are deb822: stanzas of ``Field: value`` lines, a blank line between stanzas, a leading space continues a value.
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
"""The fields that say what a package needs; Suggests is too loose to mean anything."""

LZ4_PROGRAMS = (("lz4", "-dc"), ("/usr/lib/apt/apt-helper", "cat-file"))
"""Programs that unpack lz4, which Python cannot; apt keeps its own copies of the index in that form."""

PACKAGE_NAME = re.compile(r"\s*([a-z0-9][a-z0-9+.-]*)")


class Package(NamedTuple):
    """A binary package, as far as the graph needs it."""

    name: str
    source: str
    section: str
    summary: str
    needs: tuple[tuple[str, ...], ...]
    """One tuple of alternatives for each thing needed: ``a, b | c`` is ``(("a",), ("b", "c"))``."""
    provides: tuple[str, ...]


class Release(NamedTuple):
    """A release of the archive: its title, its date, and the files it consists of, by sha256."""

    title: str
    date: str
    paths: Mapping[str, str]


def read_unpacked(path: Path) -> bytes:
    """The content of a file that may be packed with gzip, xz or lz4, as the end of its name says."""
    if not path.is_file():
        raise InputError(f"{path}: there is no such file; a Debian mirror has it (--help says where)")
    try:
        if path.suffix == ".gz":
            return gzip.decompress(path.read_bytes())
        if path.suffix == ".xz":
            return lzma.decompress(path.read_bytes())
        if path.suffix == ".lz4":
            return _unpack_lz4(path)
    except (OSError, EOFError, zlib.error, lzma.LZMAError, subprocess.CalledProcessError) as error:
        raise InputError(f"{path} cannot be unpacked ({error}): fetch it again") from error
    return path.read_bytes()


def _unpack_lz4(path: Path) -> bytes:
    for program, option in LZ4_PROGRAMS:
        if found := shutil.which(program):
            return subprocess.run([found, option, str(path)], check=True, capture_output=True).stdout
    raise InputError(f"{path} needs the program lz4 or apt-helper: install lz4, or give the .xz or .gz file")


def parse_index(text: str) -> Iterator[Package]:
    """The packages of a ``Packages`` file.

    Version bounds ``(>= 1)`` and qualifiers (``:any``, ``[amd64]``, ``<!nocheck>``) are dropped. A package without a
    Source field is its own source, and ``contrib/games`` is in section games.
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
            raise InputError(f"INDEX has a stanza without a package ({stanza[:40]!r} …): give a Debian Packages file")
        yield fields


def _names(relations: Iterable[str]) -> Iterator[str]:
    for relation in relations:
        if match := PACKAGE_NAME.match(relation):
            yield match[1]


def dependencies(packages: Mapping[str, Package]) -> dict[str, set[str]]:
    """What each package needs, without what comes from its own source.

    Of alternatives the first that can be resolved counts, as apt would choose it. A name is resolved to the package
    that bears it, else to the one package that provides it; with several providers there is nothing to choose by.
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
    """A ``Release`` or ``InRelease`` file (whose signature is not checked here; apt does that)."""
    fields = dict(re.findall(r"^(Origin|Version|Codename|Date): (.+)$", text, re.MULTILINE))
    paths = dict(re.findall(r"^ ([0-9a-f]{64}) +\d+ (\S+)$", text, re.MULTILINE))
    missing = sorted({"Origin", "Codename", "Date"} - fields.keys()) or ([] if paths else ["SHA256"])
    if missing:
        raise InputError(f"--release has no field {missing[0]}: give a Release or InRelease file of a Debian mirror")
    title = " ".join(filter(None, (fields["Origin"], fields.get("Version"), f"({fields['Codename']})")))
    return Release(title, fields["Date"], paths)
