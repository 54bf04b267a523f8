"""Finished fits on disk, one file each: what is finished survives a crash, and the same selection goes on from there.

A file is written as soon as a worker sends it, completely or not at all. It is in the format of safetensors, so nothing
is pickled.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import warnings
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
import safetensors.torch
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from torch import Tensor

from gcnsl.auto.candidates import Candidate
from gcnsl.auto.stored_member import Stored, below, stored_fit
from gcnsl.errors import InputError
from gcnsl.files import atomic_write, parse_tensors
from gcnsl.methods import Fitted

KIND = "gcnsl-fold-1"
FIT, RUN = ".safetensors", ".run"
_FILE_NAME = re.compile(r"[0-9a-f]{16}-\d+\.(safetensors|run)")
"""The key of a candidate and the number of a fold."""
_LEFT_BY_A_KILLED_PROCESS = re.compile(rf"\.{_FILE_NAME.pattern}\..*\.part")


@dataclass(frozen=True)
class FoldFit:
    """What came of training a candidate on a fold.

    Attributes:
        candidate, fold: What was trained.
        seconds: Time to train, preparation included.
        predict_seconds: Time to predict all nodes.
        elapsed: Time that the whole selection had taken by then.
        probabilities: Of all nodes (n × C).
        is_cut: Whether its time was over before training had ended; :meth:`Journal.run` continues it.
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


class Trained(NamedTuple):
    """What a worker sends: the content of a file of the journal and, if training was cut, its state."""

    content: bytes
    run: bytes | None


def packed(found: FoldFit, fitted: Fitted, problem: str) -> bytes:
    """The content of a file: a fit and its model, for a problem with this identity.

    What belongs to the inputs of the model is the same in all folds, and only in the file of the first.
    """
    plain, stored = {name: value for name, value in vars(found).items() if name != "probabilities"}, stored_fit(fitted)
    plain["candidate"] = [found.candidate.name, found.candidate.method, found.candidate.options]
    metadata = {"kind": KIND, "problem": problem, "fit": json.dumps(plain), "model": json.dumps(stored.plain)}
    kept = {name: part for name, part in stored.tensors.items() if found.fold == 0 or name.startswith("model.")}
    tensors = {f"model.{name}": part for name, part in kept.items()}
    return safetensors.torch.save(tensors | {"probabilities": torch.from_numpy(found.probabilities)}, metadata)


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
    _in_memory: dict[str, Trained] = field(default_factory=dict, init=False, repr=False, compare=False)

    def write(self, trained: Trained, candidate: Candidate, fold: int) -> FoldFit:
        """Add what a worker has sent for a candidate and a fold.

        If it can't be written, for example because the disk is full, there is one :class:`JournalWarning`.
        """
        name = _name(candidate, fold)
        if not self._is_written(name, trained):
            self._in_memory[name] = trained
        tensors, metadata = parse_tensors(trained.content)
        return self._fit(name, metadata, tensors["probabilities"])

    def read(self) -> list[FoldFit]:
        """All fits, those of the first fold first, and of each fold the earliest.

        Raises:
            InputError: If the folder holds something else, or the fits of another problem.
        """
        files = [] if self.path is None else self.path.glob(f"*{FIT}")
        return sorted((self._read(file) for file in files), key=lambda fit: (fit.fold, fit.elapsed))

    def model(self, candidate: Candidate, fold: int) -> Stored:
        """The trained model of a fit."""
        name = _name(candidate, fold)
        if name in self._in_memory:
            tensors, metadata = parse_tensors(self._in_memory[name].content)
        else:
            with safe_open(self._file(name, FIT), framework="pt") as file:
                metadata = file.metadata()
                tensors = {key: file.get_tensor(key).clone() for key in file.keys()}  # noqa: SIM118 - it is no mapping
        return Stored(json.loads(metadata["model"]), below("model", tensors))

    def run(self, candidate: Candidate, fold: int) -> bytes | None:
        """The state of a fit that was cut; ``None`` if there is none."""
        name = _name(candidate, fold)
        if name in self._in_memory:
            return self._in_memory[name].run
        if self.path is None or not self._file(name, RUN).exists():
            return None
        return self._file(name, RUN).read_bytes()

    def check_place(self) -> None:
        """Raise an InputError if there is a file in place of the folder."""
        if self.path is not None and self.path.is_file():
            raise self._refusal("is a file: it belongs to a run of a single method")

    def _is_written(self, name: str, trained: Trained) -> bool:
        """Write a fit, and say whether that was possible; then it is no longer in memory."""
        if self.path is None:
            return False
        try:
            if trained.run is not None:
                atomic_write(self._file(name, RUN), trained.run)
            atomic_write(self._file(name, FIT), trained.content)
            if trained.run is None:
                self._file(name, RUN).unlink(missing_ok=True)
        except OSError as error:
            if not self._in_memory:
                told = f"{error}; what is in {self.path} stays, but the rest can't be resumed if this is killed"
                warnings.warn(told, JournalWarning, stacklevel=4)
            return False
        self._in_memory.pop(name, None)
        return True

    def _file(self, name: str, ending: str) -> Path:
        assert self.path is not None
        return self.path / f"{name}{ending}"

    def _read(self, path: Path) -> FoldFit:
        try:
            with safe_open(path, framework="pt") as file:
                metadata = file.metadata() or {}
                if metadata.get("kind") != KIND:
                    raise self._refusal(f"holds {path.name}, which is no trained model of a selection")
                return self._fit(path.stem, metadata, file.get_tensor("probabilities"))
        except SafetensorError as error:
            raise self._refusal(f"holds {path.name}, which can't be read ({error})") from error

    def _fit(self, name: str, metadata: dict[str, str], probabilities: Tensor) -> FoldFit:
        """The fit of this name, if it is one of this problem, and its options have the defaults that they had then."""
        plain = json.loads(metadata["fit"])
        if metadata["problem"] == self.identity:
            candidate = Candidate(*plain["candidate"])
            if name == _name(candidate, plain["fold"]):
                return FoldFit(**plain | {"candidate": candidate, "probabilities": probabilities.numpy().copy()})
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
