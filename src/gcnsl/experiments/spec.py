"""The complete specification of one run: all that must be known to repeat it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from typing import Any, Literal

from gcnsl.checks import check_whole
from gcnsl.errors import InputError
from gcnsl.experiments.field_types import check_fields

Task = Literal["train", "features", "search"]
Options = tuple[tuple[str, Any], ...]

MOST_RUNS = 10_000
"""More runs than anybody has made of one cell: a larger number is damage, and tables have a place for each run."""

LATER_OPTIONS = {
    "class_weight": None,
    "standardize": "auto",
    "use_spectral": True,
    "drop_features": True,
    "residual": False,
    "norm": "none",
}
"""Options that were introduced after runs had been committed: with these values, a run has the key that it had then."""
_LATER_FIELDS = {"directed": False, "metric": "accuracy"}
"""The same for fields of a specification."""
EARLIER_NAMES = {("mixhop", "power_channels"): "hidden_channels"}
"""Options that had another name when runs were committed: a run's key is computed with that name."""


@dataclass(frozen=True)
class RunSpec:
    """The specification of a run; equal specifications give equal results on the same machine.

    The task is to train and test a method; or to time the computation of its spectral features, ``"sc"``, ``"esc"`` or
    ``"esc-anch"``, with the split ``"none"``; or to search for the method's hyper-parameters on the first splits
    (the options ``search_splits`` and ``search_trials`` say how), beginning with these options. The seed is that of the
    splits, the anchors, the shifted feature and the search.

    With ``curves``, the accuracies over the epochs are stored. ``directed`` keeps the directions of edges, and
    ``metric`` is what the method is judged by.
    """

    method: str
    dataset: str
    split: str
    run: int
    seed: int
    options: Options
    task: Task = "train"
    curves: bool = False
    directed: bool = False
    metric: str = "accuracy"

    @cached_property
    def key(self) -> str:
        """The run's identifier, a hash of all fields."""
        used = {name: value for name, value in self.options if LATER_OPTIONS.get(name, ...) != value}
        options = {EARLIER_NAMES.get((self.method, name), name): value for name, value in used.items()}
        text = json.dumps(self.to_dict() | {"options": options}, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    @property
    def group(self) -> RunSpec:
        """The specification of run 0, which is the same for all runs that differ in their number only."""
        return replace(self, run=0)

    @property
    def train_seed(self) -> int:
        """The seed of this run's weights and dropout."""
        return self.seed + self.run

    @property
    def test_score(self) -> str:
        """What the metric on test nodes is called among a result's metrics; ``"test"`` is the accuracy."""
        return "test" if self.metric == "accuracy" else f"test_{self.metric.replace('-', '_')}"

    def with_defaults(self, options: Mapping[str, Any]) -> RunSpec:
        """The same run with these values for the options that the specification does not name.

        A run that was stored before an option was introduced used what is now the option's default.
        """
        return replace(self, options=as_options({**options, **dict(self.options)}))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        plain = asdict(self) | {"options": dict(self.options)}
        return {name: value for name, value in plain.items() if _LATER_FIELDS.get(name, ...) != value}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> RunSpec:
        """Read what :meth:`to_dict` returned.

        Raises:
            ValueError: If a field has a value that it can't have.
        """
        unknown = plain.keys() - {field.name for field in fields(cls)}
        if unknown:
            raise InputError(f"unknown field {', '.join(sorted(unknown))}: the run was written by another version")
        names = {(method, earlier): name for (method, name), earlier in EARLIER_NAMES.items()}
        options = {names.get((plain["method"], name), name): value for name, value in plain["options"].items()}
        spec = cls(**{**plain, "options": as_options(options)})
        check_fields(spec)
        check_whole("run", spec.run, most=MOST_RUNS)
        if spec.task == "search":
            check_whole("search_trials", dict(spec.options).get("search_trials"), least=1)
        hash(spec)  # options within options have none
        return spec


def as_options(options: Mapping[str, Any]) -> Options:
    """Options as a specification stores them: sorted, and with tuples where JSON and TOML have lists."""
    plain = {name: tuple(value) if isinstance(value, list) else value for name, value in options.items()}
    return tuple(sorted(plain.items()))
