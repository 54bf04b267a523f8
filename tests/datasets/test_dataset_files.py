import functools
import hashlib
import http.server
import pickle
import threading

import pytest

from gcnsl import DownloadError, InputError, load
from gcnsl.datasets import benchmarks as files


@pytest.fixture(autouse=True)
def alone(monkeypatch, tmp_path):
    """No dataset on this machine and no network: an empty cache, no data folder, an address where nothing answers."""
    monkeypatch.delenv(files.DATA_VARIABLE, raising=False)
    monkeypatch.setenv(files.MIRROR_VARIABLE, "http://127.0.0.1:9/nothing")
    monkeypatch.setattr(files, "cache_folder", lambda: tmp_path / "cache")


@pytest.fixture
def known(monkeypatch):
    """Register the sums of made-up files."""

    def known(**contents: bytes) -> None:
        sums = {f"splits/{name}": hashlib.sha256(content).hexdigest() for name, content in contents.items()}
        monkeypatch.setattr(files, "checksums", lambda: sums)

    return known


@pytest.fixture
def mirror(tmp_path, monkeypatch):
    """A mirror on this machine: a folder to fill, and the list of what was asked for."""
    folder = tmp_path / "mirror"
    (folder / "splits").mkdir(parents=True)
    asked: list[str] = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_) -> None:
            asked.append(self.path)

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    monkeypatch.setenv(files.MIRROR_VARIABLE, f"http://127.0.0.1:{server.server_port}/")
    yield folder, asked
    server.shutdown()
    thread.join()
    server.server_close()


def put(folder, name: str, content: bytes) -> None:
    (folder / "splits").mkdir(parents=True, exist_ok=True)
    (folder / "splits" / name).write_bytes(content)


def test_order_root_then_variable_then_cache_then_download(tmp_path, monkeypatch, known, mirror) -> None:
    known(a=b"right")
    root, data, cache = tmp_path / "root", tmp_path / "data", tmp_path / "cache"
    put(mirror[0], "a", b"right")
    assert files.fetch(["splits/a"]) == {"splits/a": b"right"}
    assert len(mirror[1]) == 1
    assert files.find("splits/a") == cache / "splits/a"

    put(data, "a", b"right")
    monkeypatch.setenv(files.DATA_VARIABLE, str(data))
    assert files.find("splits/a") == data / "splits/a"

    put(root, "a", b"right")
    assert files.find("splits/a", root) == root / "splits/a"
    files.fetch(["splits/a"], root)
    assert len(mirror[1]) == 1, "nothing is downloaded twice"


def test_wrong_download_is_refused_and_not_kept(tmp_path, known, mirror) -> None:
    known(a=b"right")
    put(mirror[0], "a", b"wrong")
    with pytest.raises(DownloadError, match="hash"):
        files.fetch(["splits/a"])
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]


class Trap:
    """Unpickling this creates a file: what a booby-trapped dataset would do, harmlessly."""

    def __init__(self, path) -> None:
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def test_booby_trapped_pickle_never_runs(tmp_path) -> None:
    sprung = tmp_path / "sprung"
    trap = pickle.dumps(Trap(sprung))
    pickle.loads(trap).close()
    assert sprung.exists(), "the trap works"
    sprung.unlink()

    folder = tmp_path / "root" / "planetoid"
    folder.mkdir(parents=True)
    for part in ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index"):
        (folder / f"ind.cora.{part}").write_bytes(trap)
    with pytest.raises(InputError, match=r"ind\.cora\.x has been altered: .* It was not loaded"):
        load("cora", root=tmp_path / "root")
    assert not sprung.exists()


def test_offline_the_message_names_what_is_missing_and_no_credentials(known, monkeypatch) -> None:
    known(a=b"1", b=b"")
    monkeypatch.setenv(files.MIRROR_VARIABLE, "http://me:secret@127.0.0.1:9/nothing")
    message = (
        r"can't download http://127.0.0.1:9/nothing/splits/a .*Set GCNSL_DATA to a folder with splits/a, splits/b,"
    )
    with pytest.raises(DownloadError, match=message) as told:
        files.fetch(["splits/a", "splits/b"])
    assert "secret" not in str(told.value)
    assert told.value.__cause__ is None
