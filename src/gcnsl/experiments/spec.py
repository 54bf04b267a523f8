"""One run, named completely: what must be known to do it again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from typing import Any, Literal

from gcnsl.errors import InputError

Task = Literal["train", "features"]
Options = tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class RunSpec:
    """The full specification of a run; equal specifications give equal results on one machine.

    Args:
        method: A name of :data:`gcnsl.methods.METHODS`; for ``task="features"`` ``"sc"``, ``"esc"`` or ``"esc-anch"``.
        dataset: A name that :func:`gcnsl.load` knows.
        split: ``"random"``, ``"geom-gcn"``, ...; ``"none"`` where no node is classified.
        run: Which split, or which repetition, from 0.
        seed: Of splits, anchors and the shifted feature; run r draws its weights and dropout from seed + r.
        options: Every hyper-parameter, sorted by name.
        task: ``"train"``: train and test; ``"features"``: make spectral features and take the time.
        curves: Whether the accuracies of all epochs are kept.
    """

    method: str
    dataset: str
    split: str
    run: int
    seed: int
    options: Options
    task: Task = "train"
    curves: bool = False

    @cached_property
    def key(self) -> str:
        """A name for the run: a hash of all of the above."""
        text = json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    @property
    def group(self) -> RunSpec:
        """The same for all runs that read the same graph in the same form."""
        return replace(self, run=0)

    @property
    def train_seed(self) -> int:
        """The seed of this run's weights and dropout."""
        return self.seed + self.run

    def with_defaults(self, options: Mapping[str, Any]) -> RunSpec:
        """The same with options that it lacks: a run of before there was an option was a run with its default."""
        return replace(self, options=as_options({**options, **dict(self.options)}))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self) | {"options": dict(self.options)}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> RunSpec:
        """What :meth:`to_dict` gave."""
        unknown = plain.keys() - {field.name for field in fields(cls)}
        if unknown:
            raise InputError(f"a run has no {', '.join(sorted(unknown))}: it was written by another version")
        return cls(**{**plain, "options": as_options(plain["options"])})


def as_options(options: Mapping[str, Any]) -> Options:
    """Options in the form that a specification has them in; JSON and TOML know lists where options are tuples."""
    plain = {name: tuple(value) if isinstance(value, list) else value for name, value in options.items()}
    return tuple(sorted(plain.items()))
