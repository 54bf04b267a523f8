import pytest

from gcnsl import synthetic
from gcnsl.datasets import with_random_split
from gcnsl.experiments import run
from gcnsl.experiments.plan import Scope
from gcnsl.experiments.report import collect, render
from gcnsl.methods import METHODS

from .fake_methods import fake_methods
from .plausible import plausible_results


@pytest.fixture
def all_methods(monkeypatch):
    """All ten names are registered; those but GCN-SL train in no time."""
    for name, method in fake_methods().items():
        monkeypatch.setitem(METHODS, name, method)


@pytest.fixture
def small_graphs(monkeypatch):
    """Every graph is a small one, whatever its name."""

    def load(name, *, split, runs, seed, root=None, directed=False):
        data = synthetic(n=60, h=0.3, classes=3, degree=4, features=12, seed=seed, signal=0.9)
        return data if split is None else with_random_split(data, runs=runs, seed=seed)

    monkeypatch.setattr(run, "load", load)


@pytest.fixture(scope="session")
def findings():
    """What made-up results of all experiments, two runs each, say."""
    with pytest.MonkeyPatch.context() as patch:
        for name, method in fake_methods().items():
            patch.setitem(METHODS, name, method)
        return collect(plausible_results(Scope(runs=2)))


@pytest.fixture(scope="session")
def page(findings):
    """The report on them."""
    return render(findings)
