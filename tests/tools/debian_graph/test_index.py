import gzip
import lzma
import shutil
import subprocess
from random import Random

import pytest
from tools.debian_graph.index import dependencies, parse_index, read_unpacked

from gcnsl.errors import InputError

from .cases import index_of, stanza


def test_a_stanza_is_read():
    text = """\
Package: tool
Source: toolbox (1.2-3)
Section: contrib/games
Pre-Depends: dpkg (>= 1.15.6~)
Depends: liba (>= 1:2.0), libb:any | libc [amd64] <!nocheck>,
 libd
Recommends: libe
Suggests: libf
Provides: virtual (= 1), other
Description: a Game
 Depends: not this
 .
 the long text
"""
    (package,) = parse_index(text)
    assert package.name == "tool"
    assert package.source == "toolbox"
    assert package.section == "games"
    assert package.summary == "a Game"
    assert package.needs == (("dpkg",), ("liba",), ("libb", "libc"), ("libd",), ("libe",))
    assert package.provides == ("virtual", "other")


def needs_of(*stanzas):
    return dependencies(index_of(*stanzas))["tool"]


def test_the_first_alternative_that_exists_counts():
    assert needs_of(stanza("tool", Depends="gone | second | third"), stanza("second"), stanza("third")) == {"second"}
    assert needs_of(stanza("tool", Depends="gone")) == set()


def test_a_virtual_package_is_its_only_provider():
    tool = stanza("tool", Depends="virtual")
    assert needs_of(tool, stanza("real", Provides="virtual (= 1)")) == {"real"}
    assert needs_of(tool, stanza("real", Provides="virtual"), stanza("rival", Provides="virtual")) == set()
    assert needs_of(tool, stanza("virtual"), stanza("real", Provides="virtual")) == {"virtual"}


CONTENT = Random(0).randbytes(1000)


def packed(folder, how):
    path = folder / f"index.{how}"
    if how == "lz4":
        if shutil.which("lz4") is None:
            pytest.skip("the program lz4 is not installed")
        (folder / "index").write_bytes(CONTENT)
        subprocess.run(["lz4", "-q", str(folder / "index"), str(path)], check=True)
    else:
        path.write_bytes({"gz": gzip, "xz": lzma}[how].compress(CONTENT))
    return path


@pytest.mark.parametrize("how", ["gz", "xz", "lz4"])
def test_compressed_files_are_decompressed(tmp_path, how):
    path = packed(tmp_path, how)
    assert path.read_bytes() != CONTENT
    assert read_unpacked(path) == CONTENT
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(InputError, match=f"{how} cannot be decompressed"):
        read_unpacked(path)
