"""The runs of a comparison, each of which can be carried out anywhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from torch_geometric.data import Data

from gcnsl.errors import GcnslError
from gcnsl.evaluation.outcome import Preparations, run_split
from gcnsl.graph import split_count
from gcnsl.methods import Method
from gcnsl.nn.config import Folder
from gcnsl.runs.executor import check_wanted
from gcnsl.training import Epoch, choose_device


class Turn(NamedTuple):
    """A run of one of the methods."""

    name: str
    run: int


class Reached(NamedTuple):
    """What came of a run: all metrics on the test nodes, and how it was trained."""

    scores: dict[str, float]
    seconds: float
    epochs: int
    options: dict[str, Any]


class Contest:
    """Several methods on the splits of a graph: a function of a :class:`Turn`.

    It keeps the methods' inputs for their further runs, but they are not pickled with it: another machine prepares them
    for a device of its own.
    """

    def __init__(
        self, data: Data, methods: Mapping[str, Method], *, seed: int, device: str = "auto", root: Folder = None
    ) -> None:
        self.data, self._methods, self._seed = data, dict(methods), seed
        self._device, self._root = device, root
        self._prepared: dict[str, Preparations] = {}

    def __call__(self, turn: Turn, on_epoch: Callable[[Epoch], None] | None = check_wanted) -> Reached | GcnslError:
        """Carry out a run; what it raises is returned, since it is no reason to end the other methods' runs."""
        try:
            return self._run(turn, on_epoch)
        except GcnslError as error:
            return error
        except Exception as error:
            return GcnslError(": ".join(filter(None, (type(error).__name__, str(error)))))

    def _run(self, turn: Turn, on_epoch: Callable[[Epoch], None] | None) -> Reached:
        if turn.name not in self._prepared:
            where = {"seed": self._seed, "device": choose_device(self._device), "root": self._root}
            self._prepared[turn.name] = Preparations(self._methods[turn.name], self.data, **where)
        split = turn.run % split_count(self.data)
        prepared = self._prepared[turn.name].on(split)
        outcome = run_split(prepared, run=split, seed=self._seed + turn.run, on_epoch=on_epoch)
        fitted = outcome.fitted
        scores = fitted.measure(outcome.masks["test"])
        return Reached(scores, fitted.history.seconds, len(fitted.history), fitted.prepared.method.options())

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_prepared": {}}
