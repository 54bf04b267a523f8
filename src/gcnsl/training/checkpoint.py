"""A run on disk, to continue after Ctrl-C, a crash or a power cut: one safetensors file, without pickles."""

import json
import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import safetensors.torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from gcnsl.checks import LARGEST, check_whole
from gcnsl.errors import InputError, WriteError
from gcnsl.files import digest, parse_tensors, remove_leftovers, replacing, save_tensors, unshared
from gcnsl.training.state import RunState

KIND = "gcnsl-checkpoint-1"


class CheckpointWarning(UserWarning):
    """A run could not be saved. It goes on, but would begin anew, or where it was last saved, if it were killed."""


@dataclass
class Checkpoint:
    """Where and how often to save a run.

    :func:`gcnsl.training.train` writes the file regularly, on Ctrl-C and at the end, and continues from it if there is
    one. It never removes it: do so when the trained model is saved. It refuses the file of another run: settings, seed,
    device, labels, masks and all shapes must be the same.

    Args:
        path: The file; each run needs its own.
        every: Number of epochs between two writes.
        identity: What else must be the same, by name, as values for JSON; for example hyper-parameters that change no
            shape, or a checksum of the data.
    """

    path: str | os.PathLike[str]
    every: int = 50
    identity: Mapping[str, Any] = field(default_factory=dict)
    keeps_finished: ClassVar[bool] = True
    """Whether a run is saved that has ended, so that a model that could not be saved need not be trained again."""

    def __post_init__(self) -> None:
        check_whole("every", self.every, least=1, why="it is a number of epochs")

    def save(self, state: RunState, run: Mapping[str, Any]) -> bool:
        """Write the state of the run that ``run`` describes, and return whether it could be written.

        If not, for example because the disk is full, there is a :class:`CheckpointWarning`: what was learnt so far is
        worth more than the file, and the next write may succeed.
        """
        tensors = state.tensors()
        metadata = {"kind": KIND, "run": _json({**run, **self.identity}), "plain": _json(state.plain())}
        metadata["sha256"] = digest(tensors, metadata)
        try:
            self._write(tensors, metadata)
        except WriteError as error:
            warnings.warn(f"the run is not saved: {error}", CheckpointWarning, stacklevel=3)
            return False
        return True

    def restore(self, state: RunState, run: Mapping[str, Any]) -> None:
        """Restore the saved state; if there is no file, do nothing.

        Raises:
            InputError: If the file is damaged, is not a checkpoint, or belongs to another run.
        """
        if not self._exists():
            return
        tensors, metadata = self._read()
        if metadata.get("kind") != KIND:
            raise self._refusal("is not a checkpoint that this version can continue")
        if metadata.pop("sha256", None) != digest(tensors, metadata):
            raise self._refusal("is damaged: its content is not what was written")
        saved, here = json.loads(metadata["run"]), json.loads(_json({**run, **self.identity}))
        for name in sorted({*saved, *here}):
            there, wanted = saved.get(name), here.get(name)
            if there != wanted:
                raise self._refusal(f"belongs to another run: {name} is {there!r} there and {wanted!r} here")
        state.restore(tensors, json.loads(metadata["plain"]))

    def refuse_existing(self) -> None:
        """Raise an InputError if the file exists: a method that can't be continued has none, so it is another's."""
        if self._exists():
            raise self._refusal("belongs to a run of another method")

    def remove(self) -> None:
        """Delete the file, if there is one, and what killed processes have left of it."""
        Path(self.path).unlink(missing_ok=True)
        remove_leftovers(Path(self.path))

    def _exists(self) -> bool:
        return Path(self.path).exists()

    def _write(self, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
        with replacing(Path(self.path)) as temporary:
            save_tensors(temporary, tensors, metadata)

    def _read(self) -> tuple[dict[str, Tensor], dict[str, str]]:
        """The tensors and the metadata of the file."""
        if not Path(self.path).is_file():
            raise self._refusal("is not a file")
        try:
            with safe_open(self.path, framework="pt") as file:
                return {name: file.get_tensor(name).clone() for name in file.keys()}, file.metadata() or {}  # noqa: SIM118
        except SafetensorError as error:
            raise self._refusal(f"can't be read ({error})") from error

    def _refusal(self, why: str) -> InputError:
        return InputError(f"checkpoint {self.path} {why}; delete it to start again, or give another path")


@dataclass
class CutRun(Checkpoint):
    """The state of a run in memory: where to continue and, if its time is over before it has ended, where it was cut.

    ``content`` is that of the file which a :class:`Checkpoint` would be.
    """

    path: str | os.PathLike[str] = "in memory"
    every: int = LARGEST
    content: bytes | None = None
    keeps_finished: ClassVar[bool] = False

    def _exists(self) -> bool:
        return self.content is not None

    def _write(self, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
        self.content = safetensors.torch.save(unshared(tensors), dict(metadata))

    def _read(self) -> tuple[dict[str, Tensor], dict[str, str]]:
        assert self.content is not None
        try:
            return parse_tensors(self.content)
        except SafetensorError as error:
            raise self._refusal(f"can't be read ({error})") from error


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, default=lambda number: number.item())  # NumPy's numbers
