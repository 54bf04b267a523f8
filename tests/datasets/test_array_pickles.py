import os
import pickle

import numpy as np
import pytest

from gcnsl import InputError
from gcnsl.datasets.array_pickles import load_arrays


class Harm:
    def __init__(self, *call) -> None:
        self.call = call

    def __reduce__(self):
        return self.call[0], self.call[1:]


def python2(names: bytes) -> bytes:
    """A pickle as Python 2 wrote it."""
    return names.replace(b"numpy._core", b"numpy.core")


def test_arrays_and_lists_come_back() -> None:
    x = np.arange(6.0).reshape(2, 3)
    assert (load_arrays(python2(pickle.dumps(x, protocol=3)), "x") == x).all()
    assert load_arrays(pickle.dumps({0: [1, 2]}, protocol=2), "graph") == {0: [1, 2]}


@pytest.mark.parametrize("call", [(os.mkdir, "harm"), (eval, "1"), (np.load, "x.npy"), (getattr, [], "append")])
@pytest.mark.parametrize("protocol", [0, 2, 5])
def test_nothing_else_is_run(tmp_path, monkeypatch, call, protocol) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"ind.cora.x is not a pickle of arrays \(it names .*\): delete it"):
        load_arrays(pickle.dumps({"x": Harm(*call)}, protocol=protocol), "ind.cora.x")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("share", [0, 0.3, 0.9])
def test_a_damaged_pickle_is_refused(share) -> None:
    content = python2(pickle.dumps(np.arange(100.0), protocol=3))
    with pytest.raises(InputError, match="is not a pickle of arrays"):
        load_arrays(content[: int(share * len(content))], "x")
