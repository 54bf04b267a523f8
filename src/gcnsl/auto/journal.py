"""Finished fits on disk, one file each: what is finished survives a crash, and the same selection goes on from there.

Workers store nothing. A file is written as soon as a worker sends it, completely or not at all. It is in the format of
safetensors, so nothing is pickled.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
import safetensors.torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from torch import Tensor

from gcnsl.auto.blend import SavedModel, saved_model
from gcnsl.auto.candidates import Candidate
from gcnsl.auto.learning_problem import Problem
from gcnsl.errors import InputError
from gcnsl.files import atomic_write, below, parse_tensors
from gcnsl.methods import Method
from gcnsl.runs.jobs import Failed, Finished, Job, Trainer

KIND = "gcnsl-fold-1"
_FILE_NAME = re.compile(r"[0-9a-f]{16}-\d+\.safetensors")
"""The key of a candidate and the number of a fold."""
_LEFT_BY_A_KILLED_PROCESS = re.compile(rf"\.{_FILE_NAME.pattern}\..*\.part")


@dataclass(frozen=True, kw_only=True)
class FoldJob(Job):
    """Train a candidate on a fold.

    Attributes:
        candidate: What is trained; its key is the job's name.
        limit: Seconds after which it is given up, if it has not ended.
        elapsed: Seconds that the whole selection had taken before.
    """

    candidate: Candidate
    limit: float
    elapsed: float


def fold_job(
    problem: Problem, candidate: Candidate, fold: int, *, seconds: float, limit: float, elapsed: float
) -> FoldJob:
    """The job of training a candidate on a fold, in so many seconds."""
    return FoldJob(
        name=candidate.key,
        run=fold,
        method=method_for(problem, candidate),
        split=fold,
        seed=problem.seed + fold,
        seconds=seconds,
        candidate=candidate,
        limit=limit,
        elapsed=elapsed,
    )


def method_for(problem: Problem, candidate: Candidate) -> Method:
    """The candidate's method with the problem's class weights; epochs are chosen by its metric.

    Accuracy is an exception: where it is wanted, each method chooses epochs as its literature does.
    """
    monitor = {} if problem.metric == "accuracy" else {"monitor": problem.metric}
    return candidate.resolved.with_options(class_weight=problem.class_weight, **monitor)


def fold_trainer(problem: Problem) -> Callable[[FoldJob], bytes | Failed]:
    """Trains candidates on the folds of a problem, whose inputs are the same in all folds; gives files of a journal."""
    return Trainer(
        problem.graph,
        partial(packed, problem.identity),
        masks=problem.masks,
        rows=problem.learned,
        seed=problem.seed,
        device=problem.device,
    )


@dataclass(frozen=True)
class Fit:
    """What came of training a candidate on a fold.

    Attributes:
        candidate, fold: What was trained.
        seconds: Time to train, preparation included.
        predict_seconds: Time to predict all nodes.
        elapsed: Time that the whole selection had taken by then.
        probabilities: Of all nodes (n × C).
        is_cut: Whether its time was over before training had ended.
        least_seconds: Time for preparation, an epoch of the usual length, and prediction.
    """

    candidate: Candidate
    fold: int
    seconds: float
    predict_seconds: float
    elapsed: float
    probabilities: NDArray[np.float32]
    is_cut: bool = False
    least_seconds: float = 0.0


def packed(problem: str, done: Finished) -> bytes:
    """The content of a file: a fit and its model, for a problem with this identity.

    What belongs to the inputs of the model is the same in all folds, and only in the file of the first.
    """
    job, fitted = done.job, done.fitted
    assert isinstance(job, FoldJob)
    probabilities = fitted.logits().softmax(dim=1)
    predicted, saved = time.perf_counter(), saved_model(fitted)
    epoch_seconds = (done.trained - done.prepared) / len(fitted.history)
    fit = {
        "candidate": [job.candidate.name, job.candidate.method, job.candidate.options],
        "fold": job.run,
        "seconds": done.trained - done.began,
        "predict_seconds": predicted - done.trained,
        "elapsed": job.elapsed + predicted - done.began,
        "is_cut": fitted.history.stopped == "minutes",
        "least_seconds": done.prepared - done.began + epoch_seconds + predicted - done.trained,
    }
    metadata = {"kind": KIND, "problem": problem, "fit": json.dumps(fit), "model": json.dumps(saved.plain)}
    kept = {name: part for name, part in saved.tensors.items() if job.run == 0 or name.startswith("model.")}
    tensors = {f"model.{name}": part for name, part in kept.items()}
    return safetensors.torch.save(tensors | {"probabilities": probabilities}, metadata)


class JournalWarning(UserWarning):
    """A fit could not be written. The selection goes on with it, but could not go on from there in another process."""


@dataclass(frozen=True)
class Journal:
    """The finished fits of one problem, in a folder; those that can't be written are kept in memory.

    Args:
        path: The folder, which is made with the first fit; ``None`` to keep all in memory.
        identity: Tells problems apart.
    """

    path: Path | None
    identity: str
    _in_memory: dict[str, bytes] = field(default_factory=dict, init=False, repr=False, compare=False)

    def write(self, content: bytes, candidate: Candidate, fold: int) -> Fit:
        """Add what a worker has sent for a candidate and a fold.

        If it can't be written, for example because the disk is full, there is one :class:`JournalWarning`.
        """
        name = _name(candidate, fold)
        if not self._is_written(name, content):
            self._in_memory[name] = content
        tensors, metadata = parse_tensors(content)
        return self._fit(name, metadata, tensors["probabilities"])

    def read(self) -> list[Fit]:
        """All fits, those of the first fold first, and of each fold the earliest.

        Raises:
            InputError: If the folder holds something else, or the fits of another problem.
        """
        files = [] if self.path is None else self.path.glob("*.safetensors")
        return sorted((self._read(file) for file in files), key=lambda fit: (fit.fold, fit.elapsed))

    def model(self, candidate: Candidate, fold: int) -> SavedModel:
        """The trained model of a fit."""
        name = _name(candidate, fold)
        if name in self._in_memory:
            tensors, metadata = parse_tensors(self._in_memory[name])
        else:
            with safe_open(self._file(name), framework="pt") as file:
                metadata = file.metadata()
                tensors = {key: file.get_tensor(key).clone() for key in file.keys()}  # noqa: SIM118 - it is no mapping
        return SavedModel(json.loads(metadata["model"]), below("model", tensors))

    def check_place(self) -> None:
        """Raise an InputError if there is a file in place of the folder."""
        if self.path is not None and self.path.is_file():
            raise self._refusal("is a file: it belongs to a run of a single method")

    def _is_written(self, name: str, content: bytes) -> bool:
        """Write a fit, and say whether that was possible."""
        if self.path is None:
            return False
        try:
            atomic_write(self._file(name), content)
        except OSError as error:
            if not self._in_memory:
                told = f"{error}; what is in {self.path} stays, but the rest can't be resumed if this is killed"
                warnings.warn(told, JournalWarning, stacklevel=4)
            return False
        return True

    def _file(self, name: str) -> Path:
        assert self.path is not None
        return self.path / f"{name}.safetensors"

    def _read(self, path: Path) -> Fit:
        try:
            with safe_open(path, framework="pt") as file:
                metadata = file.metadata() or {}
                if metadata.get("kind") != KIND:
                    raise self._refusal(f"holds {path.name}, which is no trained model of a selection")
                return self._fit(path.stem, metadata, file.get_tensor("probabilities"))
        except SafetensorError as error:
            raise self._refusal(f"holds {path.name}, which can't be read ({error})") from error

    def _fit(self, name: str, metadata: dict[str, str], probabilities: Tensor) -> Fit:
        """The fit of this name, if it is one of this problem, and its options have the defaults that they had then."""
        plain = json.loads(metadata["fit"])
        if metadata["problem"] == self.identity:
            candidate = Candidate(*plain["candidate"])
            if name == _name(candidate, plain["fold"]):
                return Fit(**plain | {"candidate": candidate, "probabilities": probabilities.numpy().copy()})
        raise self._refusal(
            "belongs to another selection: the graph, its labels, the seed, options or the version of gcnsl differ"
        )

    def _refusal(self, why: str) -> InputError:
        return InputError(f"checkpoint {self.path} {why}; delete it to start again, or give another path")


def _name(candidate: Candidate, fold: int) -> str:
    return f"{candidate.key}-{fold}"


def remove_journal(path: str | os.PathLike[str]) -> None:
    """Delete a journal, if there is one, once the model is in a safe place. What else is in the folder stays."""
    with suppress(OSError):  # if the folder is not empty, for example
        for file in list(Path(path).iterdir()):
            if _FILE_NAME.fullmatch(file.name):
                file.unlink()
            elif _LEFT_BY_A_KILLED_PROCESS.fullmatch(file.name):
                shutil.rmtree(file)
        Path(path).rmdir()
