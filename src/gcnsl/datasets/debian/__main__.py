"""Build a graph of Debian packages from Debian's package index.

The index of a release is on every Debian mirror, and its sum in the release's InRelease file:

    curl -O https://deb.debian.org/debian/dists/bookworm/main/binary-amd64/Packages.xz
    curl -O https://deb.debian.org/debian/dists/bookworm/InRelease
    python -m gcnsl.datasets.debian Packages.xz --release InRelease -o debian.npz

On a Debian machine apt has both already, in /var/lib/apt/lists. The same index gives the same bytes. With several
indexes, a package that occurs again replaces the earlier one.
"""

import argparse
import hashlib
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from gcnsl.datasets.debian.build import BUNDLED, FULL, build
from gcnsl.datasets.debian.index import Package, Release, parse_index, parse_release, read_unpacked
from gcnsl.datasets.debian.storage import write_npz
from gcnsl.errors import InputError


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m gcnsl.datasets.debian",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("index", nargs="+", type=Path, help="Packages file, plain or .gz, .xz, .lz4")
    parser.add_argument("-o", "--output", type=Path, default=Path("debian.npz"), help="npz file to write (%(default)s)")
    parser.add_argument(
        "--release",
        action="append",
        type=Path,
        default=[],
        metavar="FILE",
        help="InRelease or Release file, repeatable: checks the sums and records release and date",
    )
    parser.add_argument("--full", action="store_true", help="every package of every large section, for tests of scale")
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
    """The packages of all indexes, and for each index its sum and the release that lists it."""
    packages: dict[str, Package] = {}
    indexes = []
    for path in paths:
        content = read_unpacked(path)
        try:
            packages |= {package.name: package for package in parse_index(content.decode())}
        except UnicodeDecodeError as error:
            remedy = "give a Packages file; if it is packed, its name must end in .gz, .xz or .lz4"
            raise InputError(f"{path} is not text ({error}): {remedy}") from error
        indexes.append(_origin(path, hashlib.sha256(content).hexdigest(), releases))
    return packages, indexes


def _origin(path: Path, sha256: str, releases: Sequence[Release]) -> dict[str, str]:
    for release in releases:
        if sha256 in release.paths:
            origin = {"release": release.title, "date": release.date, "path": release.paths[sha256]}
            return {**origin, "sha256": sha256}
    if releases:
        raise InputError(f"{path} has the sha256 {sha256}, which no --release file lists: fetch both again")
    return {"sha256": sha256}


if __name__ == "__main__":
    main()
