"""Trained models without their graphs, and the finished fits of a selection on disk, one file each.

What is finished survives a crash, and the same selection goes on from there. Workers store nothing: a file is written
as soon as a worker has sent a fit, completely or not at all. It is in the format of safetensors: nothing is pickled.
"""

from __future__ import annotations

import json
import os
import shutil
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from torch import Tensor
from torch_geometric.data import Data

from gcnsl.auto.auto_settings import AUTO
from gcnsl.auto.candidates import Candidate, FoldJob, Problem
from gcnsl.auto.ensemble import Blend, Member, OutOfFold
from gcnsl.errors import InputError
from gcnsl.files import PART, atomic_write, below, tensor_bytes
from gcnsl.methods import Fitted, find_method, prepare
from gcnsl.runs.jobs import Failed, Finished, Trainer
from gcnsl.training import History


class SavedModel(NamedTuple):
    """A trained model without its graph, as it is saved: values for JSON, and tensors by name."""

    plain: dict[str, Any]
    tensors: dict[str, Tensor]


def saved_model(fitted: Fitted, *, inputs: bool = True) -> SavedModel:
    """What :func:`restored_models` needs to make the same of the same graph, if need be without its inputs' part.

    That part is the same for all folds, and only kept with the model of the first.
    """
    prepared = fitted.prepared
    plain, precomputed, features = prepared.state()
    values = {
        "method": prepared.method.name,
        "options": prepared.method.options(),
        "seed": prepared.seed,
        "precomputed": plain,
        "history": fitted.history.to_dict(),
    }
    parts = {"model": fitted.model.state_dict()}
    parts |= {"precomputed": precomputed, "features": features} if inputs else {}
    tensors = {f"{part}.{name}": value for part, named in parts.items() for name, value in named.items()}
    return SavedModel(values, {name: value.detach().cpu().contiguous().clone() for name, value in tensors.items()})


class SavedModels(Sequence[Fitted]):
    """Models that share their inputs. They are restored when one of them is needed, as preparing inputs takes time.

    Then an :class:`gcnsl.InputError` says if that is not possible.
    """

    def __init__(self, saved: Sequence[SavedModel], graph: Data, device: torch.device) -> None:
        self.saved, self._where = saved, (graph, device)

    @cached_property
    def _fits(self) -> tuple[Fitted, ...]:
        try:
            return restored_models(self.saved, *self._where)
        except (KeyError, TypeError, ValueError, RuntimeError, IndexError, AttributeError) as error:
            name = self.saved[0].plain.get("method")
            raise InputError(f"a model of {name} can't be restored ({error}): train and save it again") from error

    def __len__(self) -> int:
        return len(self.saved)

    def __getitem__(self, index: Any) -> Any:
        return self._fits[index]


def restored_models(saved: Sequence[SavedModel], graph: Data, device: torch.device) -> tuple[Fitted, ...]:
    """Models that share their inputs; raises a KeyError, TypeError, ValueError or RuntimeError if one is damaged."""
    plain, tensors = saved[0]
    method = find_method(plain["method"]).with_options(**plain["options"])
    state = plain["precomputed"], below("precomputed", tensors), below("features", tensors)
    prepared, fits = prepare(method, graph, seed=plain["seed"], device=device, state=state), []
    for each in saved:
        model = prepared.build()
        model.load_state_dict(below("model", each.tensors))
        fits.append(Fitted(prepared, model.eval(), History.from_dict(each.plain["history"])))
    return tuple(fits)


def saved_blend(blend: Blend, options: Mapping[str, Any]) -> SavedModel:
    """What :func:`restored_blend` needs; ``options`` are those of the selection."""
    members, tensors = [], dict[str, Tensor]()
    for number, member in enumerate(blend.members):
        fits = member.fits.saved if isinstance(member.fits, SavedModels) else None
        fits = fits or [saved_model(fit, inputs=fold == 0) for fold, fit in enumerate(member.fits)]
        seed = fits[0].plain["seed"]
        own = {"name": member.name, "weight": member.weight, "temperature": member.temperature}
        members.append(own | {"fits": [fit.plain for fit in fits]})
        for fold, fit in enumerate(fits):
            tensors |= {f"member.{number}.{fold}.{name}": value for name, value in fit.tensors.items()}
    values = {"method": AUTO, "options": dict(options), "seed": seed, "members": members}
    values |= {"ensemble_temperature": blend.temperature, "history": blend.history.to_dict()}
    tensors["logits"] = blend.logits()
    if blend.out_of_fold is not None:
        tensors |= {f"out_of_fold.{name}": part for name, part in blend.out_of_fold._asdict().items()}
    return SavedModel(values, tensors)


def restored_blend(saved: SavedModel, graph: Data, device: torch.device) -> Blend:
    """The ensemble that was saved, on the same graph; its members are restored when they are needed."""
    plain, tensors, members = saved.plain, saved.tensors, []
    for number, own in enumerate(plain["members"]):
        parts = (below(f"member.{number}.{fold}", tensors) for fold in range(len(own["fits"])))
        fits = SavedModels([SavedModel(*both) for both in zip(own["fits"], parts, strict=True)], graph, device)
        members.append(Member(own["name"], own["weight"], own["temperature"], fits))
    judged, history = below("out_of_fold", tensors), History.from_dict(plain["history"])
    out_of_fold = OutOfFold(**judged) if judged else None
    return Blend(tuple(members), history, graph, plain["ensemble_temperature"], tensors["logits"], out_of_fold)


@dataclass(frozen=True)
class Fit:
    """What came of training a candidate on a fold."""

    candidate: Candidate
    fold: int
    seconds: float
    """Time to train, preparation included."""
    predict_seconds: float
    probabilities: NDArray[np.float32]
    """Of all nodes (n × C)."""
    elapsed: float = 0.0
    """Time that the whole selection had taken by then."""
    is_cut: bool = False
    """Whether its time was over before training had ended."""
    least_seconds: float = 0.0
    """Time for preparation, an epoch of the usual length, and prediction."""


def fold_trainer(problem: Problem) -> Callable[[FoldJob], tuple[Fit, SavedModel] | Failed]:
    """Trains candidates on the folds of a problem; the inputs of a candidate are the same in all folds."""
    where: dict[str, Any] = {"seed": problem.seed, "device": problem.device}
    return Trainer(problem.graph, _fit_and_model, masks=problem.masks, rows=problem.learned, **where)


def _fit_and_model(done: Finished) -> tuple[Fit, SavedModel]:
    job, fitted = done.job, done.fitted
    assert isinstance(job, FoldJob)
    probabilities = fitted.logits().softmax(dim=1).numpy()
    predict_seconds = time.perf_counter() - done.trained
    epoch_seconds = (done.trained - done.prepared) / len(fitted.history)
    fit = Fit(
        job.candidate,
        job.run,
        done.trained - done.began,
        predict_seconds,
        probabilities,
        is_cut=fitted.history.stopped == "minutes",
        least_seconds=done.prepared - done.began + epoch_seconds + predict_seconds,
    )
    return fit, saved_model(fitted, inputs=job.run == 0)


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
    _in_memory: dict[tuple[str, int], SavedModel] = field(default_factory=dict, init=False, repr=False, compare=False)

    def write(self, fit: Fit, model: SavedModel) -> None:
        """Add a fit. If it can't be written, for example because the disk is full, there is one warning of it."""
        if self.path is not None:
            plain = vars(fit) | {"candidate": [fit.candidate.name, fit.candidate.method, fit.candidate.options]}
            tensors = {f"model.{part}": value for part, value in model.tensors.items()}
            tensors["probabilities"] = torch.from_numpy(plain.pop("probabilities"))
            metadata = {"problem": self.identity, "fit": json.dumps(plain), "model": json.dumps(model.plain)}
            try:
                atomic_write(self._file(fit.candidate, fit.fold), tensor_bytes(tensors, metadata))
                return
            except OSError as error:
                if not self._in_memory:
                    told = f"{error}; what is in {self.path} stays, but the rest can't be resumed if this is killed"
                    warnings.warn(told, JournalWarning, stacklevel=3)
        self._in_memory[fit.candidate.key, fit.fold] = model

    def read(self) -> list[Fit]:
        """All fits, those of the first fold first, and of each fold the earliest.

        Raises:
            InputError: If it is a file, or the folder holds something else, or the fits of another problem.
        """
        if self.path is not None and self.path.is_file():
            raise self._refusal("is a file: it belongs to a run of a single method")
        files = [] if self.path is None else self.path.glob("*.safetensors")
        return sorted((self._read(file) for file in files), key=lambda fit: (fit.fold, fit.elapsed))

    def _read(self, path: Path) -> Fit:
        try:
            with safe_open(path, framework="np") as file:
                metadata = file.metadata() or {}
                if metadata.get("problem") != self.identity:
                    differ = "the graph, its labels, the seed, options or the version of gcnsl differ"
                    raise self._refusal(f"belongs to another selection: {differ}")
                plain, probabilities = json.loads(metadata["fit"]), file.get_tensor("probabilities")
        except SafetensorError as error:
            raise self._refusal(f"holds {path.name}, which can't be read ({error})") from error
        return Fit(**plain | {"candidate": Candidate(*plain["candidate"]), "probabilities": probabilities})

    def _refusal(self, why: str) -> InputError:
        return InputError(f"checkpoint {self.path} {why}; delete it to start again, or give another path")

    def model(self, candidate: Candidate, fold: int) -> SavedModel:
        """The trained model of a fit."""
        if (candidate.key, fold) in self._in_memory:
            return self._in_memory[candidate.key, fold]
        with safe_open(self._file(candidate, fold), framework="pt") as file:
            tensors = {key: file.get_tensor(key).clone() for key in file.keys()}  # noqa: SIM118 - it is no mapping
            return SavedModel(json.loads(file.metadata()["model"]), below("model", tensors))

    def _file(self, candidate: Candidate, fold: int) -> Path:
        assert self.path is not None
        return self.path / f"{candidate.key}-{fold}.safetensors"


def remove_journal(path: str | os.PathLike[str]) -> None:
    """Delete a journal, if there is one, once the model is in a safe place. What else is in the folder stays."""
    of_a_fit = f"{'[0-9a-f]' * 16}-*.safetensors"
    with suppress(OSError):  # if the folder is not empty, for example
        for file in [*Path(path).glob(of_a_fit), *Path(path).glob(f".{of_a_fit}.*{PART}")]:
            shutil.rmtree(file) if file.is_dir() else file.unlink()
        Path(path).rmdir()
