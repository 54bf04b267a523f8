"""A job: one method, trained on one split of a graph. Any process can do it; it gives a result, or says why not.

Its identity is a hash of data, method, options, split, seed and version: only equal runs are resumed.
"""

import json
import math
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch_geometric.data import Data

from gcnsl.errors import GcnslError, TrainingDiverged, one_line
from gcnsl.files import digest
from gcnsl.graph import encode_columns, split_masks
from gcnsl.graph.edges import edge_parts
from gcnsl.methods import Fitted, Method, Prepared, fit, prepare
from gcnsl.methods.prepared import depends_on_split
from gcnsl.runs.executor import check_wanted
from gcnsl.sparse import stored_parts
from gcnsl.training import METRICS, Enough, Epoch, choose_device
from gcnsl.version import __version__

Found = TypeVar("Found")

_NO_MEMORY = ("out of memory", "allocate memory", "bad_alloc", "MemoryError")
"""What torch says on a GPU and on a CPU, and what is left of the errors of other libraries."""
_CSR = ("data", "indices", "indptr")
_NAMES = ("feature_names", "class_names", "benchmark")


@dataclass(frozen=True, kw_only=True)
class Job:
    """Train a method on a split. Within a graph and its splits, the name and the run tell jobs apart."""

    name: str
    """What it is done for: the same for all runs of a method with its hyper-parameters, and for no other."""
    run: int
    method: Method
    split: int
    seed: int
    """Of the weights and of dropout."""
    seconds: float = math.inf
    """Time for it, preparation included: training ends with the last epoch that fits."""
    limit: float = math.inf
    """Seconds after which it is given up, by executors that can."""

    def goes_on(self, curves: tuple[Sequence[float], Sequence[float]], seconds: float) -> bool:
        """Whether training goes on after so many seconds.

        The curves are the metric and the loss on validation nodes after each epoch, with the sign that makes more
        better.
        """
        return True


class Finished(NamedTuple):
    """A job that is done, with three times by :func:`time.perf_counter`."""

    job: Job
    fitted: Fitted
    masks: Mapping[str, Tensor]
    """The split's nodes by what they are for (n each)."""
    began: float
    prepared: float
    """When the inputs were ready."""
    trained: float
    """When training had ended."""


class Failed(NamedTuple):
    """A job that could not be done: the error, and the traceback as text."""

    error: GcnslError
    traceback: str

    @property
    def why(self) -> str:
        """The error in a few words."""
        return reason(self.error)


class Preparations:
    """A method's inputs on a graph: made once for all splits or, if training nodes decide on them, for each split.

    Args:
        method: The method.
        data: A graph with labels and masks (n × splits).
        rows: The nodes that the inputs of all splits are fitted to (n); ``None`` for each split's training nodes.
        **options: The seed, the device and the folder of :func:`gcnsl.methods.prepare`.
    """

    def __init__(self, method: Method, data: Data, *, rows: Tensor | None = None, **options: Any) -> None:
        self._method, self._data, self._rows, self._options = method, data, rows, options
        self._by_split = rows is None and depends_on_split(method.config, data)
        self._last: tuple[int, Prepared] | None = None

    def on(self, split: int) -> Prepared:
        """The inputs on one of the splits."""
        if self._last is None or (self._by_split and self._last[0] != split):
            rows, data = self._rows, self._data
            if self._by_split:
                rows = split_masks(data, split)["train"]
                data = encode_columns(data, rows)
            self._last = split, prepare(self._method, data, rows=rows, **self._options)
        return self._last[1]


class Trainer(Generic[Found]):
    """Does jobs on a graph: a function of a :class:`Job`, for an executor.

    It keeps inputs for further splits, but they are not pickled with it: another machine prepares them for a device of
    its own.

    Args:
        data: A graph with labels and masks (n × splits).
        result: What to make of a job that is done; a function of a module, so that it can be pickled.
        masks: The nodes of a split by what they are for; ``None`` for those of the graph's masks.
        seed: Of the inputs.
        device: Where to train.
        keep: Of how many methods, with their hyper-parameters, to keep the inputs.
        **options: The rows and the folder of :class:`Preparations`.
    """

    def __init__(
        self,
        data: Data,
        result: Callable[[Finished], Found],
        *,
        masks: Callable[[int], Mapping[str, Tensor]] | None = None,
        seed: int,
        device: str = "auto",
        keep: int = 1,
        **options: Any,
    ) -> None:
        self.data, self._result, self._masks = data, result, masks
        self._seed, self._device, self._keep, self._options = seed, device, keep, options
        self._prepared: dict[str, Preparations] = {}

    def __call__(self, job: Job) -> Found | Failed:
        """Do a job; whatever it raises is returned, since it is no reason to end others."""
        try:
            return self._result(self._done(job))
        except Exception as error:
            return Failed(_told(error), traceback.format_exc())

    def _done(self, job: Job) -> Finished:
        began = time.perf_counter()
        inputs = self._preparations(job).on(job.split)
        prepared = time.perf_counter()
        masks = split_masks(self.data, job.split) if self._masks is None else self._masks(job.split)
        left = max(0.0, job.seconds - (prepared - began))
        gains, losses = list[float](), list[float]()

        def look(epoch: Epoch) -> None:
            check_wanted(epoch)
            gains.append(METRICS[epoch.metric].gain(epoch.score))
            losses.append(-epoch.val_loss)
            if not job.goes_on((gains, losses), time.perf_counter() - began):
                raise Enough

        how: dict[str, Any] = {"train_mask": masks["train"], "val_mask": masks["val"], "seed": job.seed}
        fitted = fit(inputs, **how, minutes=None if left == math.inf else left / 60, on_epoch=look)
        return Finished(job, fitted, masks, began, prepared, time.perf_counter())

    def _preparations(self, job: Job) -> Preparations:
        if job.name not in self._prepared:
            for oldest in list(self._prepared)[: max(0, len(self._prepared) + 1 - self._keep)]:
                del self._prepared[oldest]
            where: dict[str, Any] = {"seed": self._seed, "device": choose_device(self._device), **self._options}
            self._prepared[job.name] = Preparations(job.method, self.data, **where)
        return self._prepared[job.name]

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_prepared": {}}


def reason(error: Exception) -> str:
    """What has failed, in a few words."""
    if isinstance(error, MemoryError) or any(words in str(error) for words in _NO_MEMORY):
        return "not enough memory"
    if isinstance(error, TrainingDiverged):
        return "training diverged"
    return one_line(str(_told(error)), 160)


def _told(error: Exception) -> GcnslError:
    """An error of ours that names another's kind."""
    named = ": ".join(filter(None, (type(error).__name__, str(error))))
    return error if isinstance(error, GcnslError) else GcnslError(named)


def graph_digest(data: Data, parts: Mapping[str, Tensor] | None = None) -> str:
    """SHA-256 of a graph: features, the table columns they are made of, edges and names; labels only as ``parts``."""
    tensors = {**stored_parts(data.x, "x"), **edge_parts(data), **(parts or {})}
    names = {name: json.dumps(data[name]) for name in _NAMES if data.get(name) is not None}
    columns = data.get("columns")
    if columns is not None:  # which the features of a split are made of later
        rows = pd.util.hash_pandas_object(columns.table.arrow.to_pandas(), index=False)
        tensors["columns"] = torch.from_numpy(rows.to_numpy().view(np.int64).copy())
        names["kinds"] = json.dumps(columns.kinds)
        if columns.wide is not None:
            tensors |= {f"wide.{part}": torch.from_numpy(getattr(columns.wide.matrix, part)) for part in _CSR}
    return digest(tensors, names)


def identity(data: Data, parts: Mapping[str, Tensor], **facts: Any) -> str:
    """SHA-256 of all that decides the result of a run; the version of this package is part of it.

    Args:
        data: The graph.
        parts: The labels, and the masks or folds, by name.
        facts: All else, as values for JSON: the method, all of its options, the metric, the seed.
    """
    plain = json.dumps({**facts, "version": __version__}, sort_keys=True)
    return digest({}, {"graph": graph_digest(data, parts), "facts": plain})
