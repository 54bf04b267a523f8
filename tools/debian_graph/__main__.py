"""Build a graph of Debian packages from Debian's package index.

Every Debian mirror has the index of a release, and its checksum in the release's InRelease file:

    curl -O https://deb.debian.org/debian/dists/bookworm/main/binary-amd64/Packages.xz
    curl -O https://deb.debian.org/debian/dists/bookworm/InRelease
    python -m tools.debian_graph Packages.xz --release InRelease -o debian.npz

Run it from the root of a checkout, with gcnsl installed. On a Debian machine, apt keeps both files in
/var/lib/apt/lists. The same index always gives the same bytes. If several indexes contain a package, the last one
counts.
"""

import argparse
import hashlib
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from gcnsl.errors import InputError
from tools.debian_graph.build import BUNDLED, FULL, build, write_npz
from tools.debian_graph.index import Package, Release, parse_index, parse_release, read_unpacked


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.debian_graph",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("index", nargs="+", type=Path, help="Packages file, uncompressed or .gz, .xz, .lz4")
    parser.add_argument("-o", "--output", type=Path, default=Path("debian.npz"), help="npz file to write (%(default)s)")
    parser.add_argument(
        "--release",
        action="append",
        type=Path,
        default=[],
        metavar="FILE",
        help="InRelease or Release file (repeatable): checks the checksums and records the release and its date",
    )
    parser.add_argument("--full", action="store_true", help="keep every package of every large section")
    options = parser.parse_args(arguments)
    try:
        releases = [parse_release(read_unpacked(path).decode()) for path in options.release]
        packages, indexes = read_indexes(options.index, releases)
        rule = FULL if options.full else BUNDLED
        graph = build(packages, rule)
        write_npz(options.output, graph, {"indexes": indexes, "rule": asdict(rule)})
    except (InputError, OSError) as error:
        sys.exit(f"error: {error}")
    h = float(np.mean(graph.y[graph.edges[:, 0]] == graph.y[graph.edges[:, 1]]))
    print(
        f"{options.output}: {len(graph.packages):,} packages of {len(graph.class_names)} sections, "
        f"{len(graph.edges):,} edges, {len(graph.words):,} words, h = {h:.3f}"
    )


def read_indexes(paths: Sequence[Path], releases: Sequence[Release]) -> tuple[dict[str, Package], list[dict[str, str]]]:
    """Read the packages of all indexes, and for each index its checksum and the release that lists it."""
    packages: dict[str, Package] = {}
    indexes = []
    for path in paths:
        content = read_unpacked(path)
        try:
            packages |= {package.name: package for package in parse_index(content.decode())}
        except UnicodeDecodeError as error:
            remedy = "give a Packages file; if it is compressed, its name must end in .gz, .xz or .lz4"
            raise InputError(f"{path} is not text ({error}): {remedy}") from error
        indexes.append(_origin(path, hashlib.sha256(content).hexdigest(), releases))
    return packages, indexes


def _origin(path: Path, sha256: str, releases: Sequence[Release]) -> dict[str, str]:
    for release in releases:
        if sha256 in release.paths:
            origin = {"release": release.title, "date": release.date, "path": release.paths[sha256]}
            return {**origin, "sha256": sha256}
    if releases:
        raise InputError(f"{path} has the sha256 {sha256}, which no --release file lists: download both again")
    return {"sha256": sha256}


if __name__ == "__main__":
    main()
