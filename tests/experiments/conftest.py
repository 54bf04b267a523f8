import pytest

from gcnsl.experiments.collect import collect
from gcnsl.experiments.paper_report import render
from gcnsl.experiments.plan import Scope
from gcnsl.methods import METHODS

from .fake_methods import fake_methods
from .plausible import plausible_results


@pytest.fixture(autouse=True, scope="module")
def one_thread(single_thread):
    """All tests here work on small matrices."""


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
