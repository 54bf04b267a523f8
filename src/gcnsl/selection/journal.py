"""Finished fits on disk, one file each: what is finished survives a crash, and the same selection goes on from there.

A file is written as soon as a worker sends it, completely or not at all. It is in the format of safetensors, so nothing
is pickled.
"""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import safetensors.torch
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from gcnsl.errors import InputError
from gcnsl.files import atomic_write
from gcnsl.methods import Fitted
from gcnsl.selection.candidates import Candidate
from gcnsl.selection.stored_member import Stored, stored_fit

KIND = "gcnsl-fold-1"
_FILE_NAME = re.compile(r"[0-9a-f]{16}-\d+\.(safetensors|run)")
"""The key of a candidate and the number of a fold."""


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


@dataclass(frozen=True)
class Journal:
    """A folder with the finished fits of one problem.

    Args:
        path: The folder; it is made with the first fit.
        identity: Tells problems apart.
    """

    path: Path
    identity: str

    def write(self, trained: Trained, candidate: Candidate, fold: int) -> FoldFit:
        """Add what a worker has sent for a candidate and a fold."""
        file, run = self._file(candidate, fold), self._run_file(candidate, fold)
        if trained.run is not None:
            atomic_write(run, trained.run)
        atomic_write(file, trained.content)
        if trained.run is None:
            run.unlink(missing_ok=True)
        return self._read(file)

    def read(self) -> list[FoldFit]:
        """All fits, those of the first fold first, and of each fold the earliest.

        Raises:
            InputError: If the folder holds something else, or the fits of another problem.
        """
        found = (self._read(path) for path in self.path.glob("*.safetensors"))
        return sorted(found, key=lambda fit: (fit.fold, fit.elapsed))

    def model(self, candidate: Candidate, fold: int) -> Stored:
        """The trained model of a fit."""
        with safe_open(self._file(candidate, fold), framework="pt") as file:
            names = [name for name in file.keys() if name.startswith("model.")]  # noqa: SIM118 - it is no mapping
            tensors = {name.removeprefix("model."): file.get_tensor(name).clone() for name in names}
            return Stored(json.loads(file.metadata()["model"]), tensors)

    def run(self, candidate: Candidate, fold: int) -> bytes | None:
        """The state of a fit that was cut; ``None`` if there is none."""
        file = self._run_file(candidate, fold)
        return file.read_bytes() if file.exists() else None

    def check_place(self) -> None:
        """Raise an InputError if there is a file in place of the folder."""
        if self.path.is_file():
            raise self._refusal("is a file: it belongs to a run of a single method")

    def _file(self, candidate: Candidate, fold: int) -> Path:
        return self.path / f"{candidate.key}-{fold}.safetensors"

    def _run_file(self, candidate: Candidate, fold: int) -> Path:
        return self.path / f"{candidate.key}-{fold}.run"

    def _read(self, path: Path) -> FoldFit:
        try:
            with safe_open(path, framework="pt") as file:
                metadata: dict[str, Any] = file.metadata() or {}
                if metadata.get("kind") != KIND:
                    raise self._refusal(f"holds {path.name}, which is no trained model of a selection")
                if metadata["problem"] != self.identity:
                    raise self._refusal("belongs to another selection: the graph, its labels, seed or options differ")
                plain, probabilities = json.loads(metadata["fit"]), file.get_tensor("probabilities").numpy().copy()
        except SafetensorError as error:
            raise self._refusal(f"holds {path.name}, which can't be read ({error})") from error
        return FoldFit(**plain | {"candidate": Candidate(*plain["candidate"]), "probabilities": probabilities})

    def _refusal(self, why: str) -> InputError:
        return InputError(f"checkpoint {self.path} {why}; delete it to start again, or give another path")


def remove_journal(path: str | os.PathLike[str]) -> None:
    """Delete a journal, if there is one, once the model is in a safe place. What else is in the folder stays."""
    with suppress(OSError):  # if the folder is not empty, for example
        for file in list(Path(path).iterdir()):
            if _FILE_NAME.fullmatch(file.name):
                file.unlink()
        Path(path).rmdir()
