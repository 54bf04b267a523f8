"""The command that builds a graph, on made-up indexes."""

import hashlib

import numpy as np
import pytest
from tools.debian_graph.__main__ import main
from tools.debian_graph.build import BUNDLED

from .cases import stanza, stored_graph


@pytest.fixture
def index_file(tmp_path):
    """A made-up index that is large enough for the rule of the bundled graph."""
    random = np.random.default_rng(0)
    words = [f"word{i}" for i in range(60)]
    stanzas = []
    for i in range(400):
        needs = ", ".join(f"package{j}" for j in random.integers(0, 400, 3))
        summary = " ".join(random.choice(words, 4))
        stanzas.append(stanza(f"package{i}", BUNDLED.sections[i % 8], summary, Depends=needs))
    path = tmp_path / "Packages"
    path.write_text("\n\n".join(stanzas) + "\n", encoding="utf-8")
    return path


RELEASE = """\
-----BEGIN PGP SIGNED MESSAGE-----

Origin: Debian
Suite: stable
Version: 12.15
Codename: bookworm
Date: Sat, 11 Jul 2026 10:16:37 UTC
MD5Sum:
 f230d61720e789abf5df55d6026230c6 50060337 main/binary-amd64/Packages
SHA256:
 {sha256} 50060337 main/binary-amd64/Packages
"""


def test_the_release_is_recorded_and_vouches_for_the_index(index_file, tmp_path):
    sha256 = hashlib.sha256(index_file.read_bytes()).hexdigest()
    release = tmp_path / "InRelease"
    release.write_text(RELEASE.format(sha256=sha256), encoding="utf-8")
    main([str(index_file), "--release", str(release), "-o", str(tmp_path / "graph.npz")])
    assert stored_graph(tmp_path / "graph.npz")[1]["indexes"] == [
        {
            "release": "Debian 12.15 (bookworm)",
            "date": "Sat, 11 Jul 2026 10:16:37 UTC",
            "path": "main/binary-amd64/Packages",
            "sha256": sha256,
        }
    ]
    release.write_text(RELEASE.format(sha256="0" * 64), encoding="utf-8")
    with pytest.raises(SystemExit, match=f"{sha256}, which no --release file lists"):
        main([str(index_file), "--release", str(release), "-o", str(tmp_path / "other.npz")])
    assert not (tmp_path / "other.npz").exists()


def test_errors_of_the_command_are_one_line(tmp_path):
    gone, binary, letter = (tmp_path / name for name in ("gone", "binary", "letter"))
    binary.write_bytes(b"\xff\xfe")
    letter.write_text("Dear reader,\n\nthis is a letter.\n", encoding="utf-8")
    for path, message in ((gone, "does not exist"), (binary, "is not text"), (letter, "stanza without")):
        with pytest.raises(SystemExit, match=message) as stopped:
            main([str(path), "-o", str(tmp_path / "graph.npz")])
        assert "\n" not in str(stopped.value)
        assert not (tmp_path / "graph.npz").exists()
