import sys

import pytest
import torch
from fake_methods import fake_methods
from plausible import plausible_results
from threadpoolctl import threadpool_limits

from gcnsl import cli
from gcnsl.cli import console
from gcnsl.experiments.collect import collect
from gcnsl.experiments.plan import Scope
from gcnsl.experiments.report import render
from gcnsl.methods import METHODS


@pytest.fixture(autouse=True, scope="package")
def one_thread():
    """Work on small matrices in one thread: on a busy machine several only wait for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with threadpool_limits(1):
        yield
    torch.set_num_threads(threads)


@pytest.fixture
def all_methods(monkeypatch):
    """All ten names are registered; those but GCN-SL train in no time."""
    for name, method in fake_methods().items():
        monkeypatch.setitem(METHODS, name, method)


@pytest.fixture(scope="session")
def findings(tmp_path_factory):
    """What made-up results of all experiments, two runs each, say."""
    with pytest.MonkeyPatch.context() as patch:
        for name, method in fake_methods().items():
            patch.setitem(METHODS, name, method)
        scope = Scope(settings=tmp_path_factory.mktemp("settings"), runs=2)
        return collect(plausible_results(scope), settings=scope.settings)


@pytest.fixture(scope="session")
def page(findings):
    """The report on them."""
    return render(findings)


@pytest.fixture
def gcnsl(monkeypatch, capsys):
    """Run the command line in this process: exit code, standard output, standard error."""

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["gcnsl", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        captured = capsys.readouterr()
        return int(stop.value.code or 0), captured.out, captured.err

    monkeypatch.setattr(console.out, "width", 200)
    monkeypatch.setattr(console.err, "width", 200)
    return run
