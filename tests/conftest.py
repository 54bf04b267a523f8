"""Shared test set-up: where the real datasets are, what happens when they are not, the command line, and a browser."""

import os
import shutil
import signal
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "gcnsl",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],  # machines are noisy
    derandomize="CI" in os.environ,  # new examples are for those who can look into them
)
settings.load_profile("gcnsl")

SMALL = {"auto", "cli", "estimator", "evaluation", "experiments", "methods", "nn", "plain", "spectral", "training"}
"""Folders whose tests work on small matrices."""

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell that starts us in the background has it ignored


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests in a browser are slow."""
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def data_root() -> Path:
    """The folder of the real datasets; tests that ask for it skip, with a reason, where there is none."""
    root = os.environ.get("GCNSL_DATA", "")
    if root and Path(root).is_dir():
        return Path(root)
    reason = f"GCNSL_DATA({root!r}) is not a folder with the real datasets"
    if os.environ.get("GCNSL_REQUIRE_DATA"):
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="module")
def single_thread():
    """Work on small matrices in one thread: on a busy machine several only wait for each other."""
    from gcnsl.execution import one_thread

    with one_thread():
        yield


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory):
    """What is computed once, as by Geom-GCN, is kept in one folder for all tests of a session."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.getbasetemp() / "cache"
        patch.setattr("gcnsl.datasets.benchmarks.cache_folder", lambda: folder)
        yield


@pytest.fixture(autouse=True, scope="module")
def one_thread_in_small_rooms(request) -> None:
    if request.path.parent.name in SMALL:
        request.getfixturevalue("single_thread")


@pytest.fixture
def gcnsl(monkeypatch, capsys):
    """Run the command line in this process: exit code, standard output, standard error."""
    from gcnsl import cli  # only where it is asked for: it sets how threads wait
    from gcnsl.cli import console

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["gcnsl", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        captured = capsys.readouterr()
        return int(stop.value.code or 0), captured.out, captured.err

    monkeypatch.setattr(console.out, "width", 200)
    monkeypatch.setattr(console.err, "width", 200)
    return run


@pytest.fixture(scope="module")
def browser():
    """A real browser, headless; tests that ask for it skip, with a reason, where there is none."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None:
        pytest.skip("no chromium on this machine: apt-get install chromium")
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with playwright.sync_playwright() as driver:
        launched = driver.chromium.launch(executable_path=chromium, args=arguments)
        yield launched
        launched.close()


@pytest.fixture
def open_page(browser, address):
    """Open a module's ``address``; whatever the browser complains about, or wants to load, fails the test."""
    complaints, loaded, contexts = [], [], []

    def opened(**options):
        context = browser.new_context(offline=True, reduced_motion="reduce", **options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: loaded.append(request.url))
        page.goto(address)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []
    assert {url.partition("#")[0] for url in loaded} == {address}
