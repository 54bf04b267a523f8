"""What is tried: first the methods with their defaults, then other hyper-parameters of those that do best."""

from __future__ import annotations

import hashlib
import json
import statistics
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import optuna
from torch_geometric.data import Data

from gcnsl.methods import Method, find_method
from gcnsl.methods.registry import space_of, starts_of
from gcnsl.options import Search as SearchRange
from gcnsl.sparse import pairs_in_two_steps, stored_entries

if TYPE_CHECKING:
    from gcnsl.auto.journal import Fit

MANY_PAIRS = 3e7
"""With more pairs of nodes two steps apart than this, methods that store them are left out."""
PER_ENTRY = {
    "label-propagation": 0.08,
    "logistic": 2.0,
    "boosted-trees": 3.0,
    "twins": 0.7,
    "mlp": 0.07,
    "gcn-sl-plus": 2.4,
    "linkx": 0.2,
    "sage": 0.17,
    "fsgnn": 1.7,
    "gcn": 0.15,
    "h2gcn-2": 6.0,
    "gpr-gnn": 0.14,
    "acm-gcn": 0.4,
    "dir-gcn": 1.2,
}
"""Seconds of one core for each million of features and edges: preparation, one epoch or stage, and a prediction, on a
graph of 20,000 nodes with 64 features and 20 neighbours."""
FIXED = 0.1
"""Seconds that a fit takes on any graph."""
DEEP_LAYERS, DEEP = 5, 6.0
"""From so many layers on, a fit takes so many times as long."""
TURNS = (0, 1, 0, 2, 0, 1)
"""Whose turn it is, by rank: the best method is tried most often."""
STARTUP_TRIALS = 6
"""So many proposals for a method are drawn before they follow what was good."""
PATIENT_TRIALS = 5
"""None is given up for falling behind before so many are complete."""
_DEEP = {"num_layers": 5, "hidden_channels": 128, "norm": "batch", "dropout": 0.3, "drop_features": False}


@dataclass(frozen=True)
class Candidate:
    """A method with some hyper-parameters, and a name to show.

    Two candidates are equal if they train the same model: whatever their names, and whether or not an option is given
    that has its default value.
    """

    name: str = field(compare=False)
    method: str
    options: dict[str, Any] = field(default_factory=dict, compare=False)
    key: str = field(init=False)

    def __post_init__(self) -> None:
        # With all options, as what is a default today may be another value in the next version.
        text = json.dumps([self.method, self.resolved.options()], sort_keys=True)
        object.__setattr__(self, "key", hashlib.sha256(text.encode()).hexdigest()[:16])

    @cached_property
    def resolved(self) -> Method:
        """The method with these hyper-parameters."""
        return find_method(self.method).with_options(**self.options)


def portfolio(graph: Data) -> list[Candidate]:
    """The candidates for a graph, each with defaults from its literature, cheap ones first."""
    left_out = set() if graph.num_features else {"mlp"}
    if pairs_in_two_steps(graph.edge_index, graph.num_nodes) > MANY_PAIRS:
        left_out.add("h2gcn-2")
    entries = _entries(directed="arc_index" in graph)
    return [
        Candidate(", ".join(filter(None, (find_method(method).title, variant))), method, options)
        for method, variant, options in entries
        if method not in left_out
    ]


def _entries(*, directed: bool) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Methods, what is special about them in a word, and options."""
    along = {"direction": "out" if directed else "undirected"}
    yield "label-propagation", "", {}
    yield "logistic", "", {}
    yield "boosted-trees", "", {}
    yield "twins", "", along
    yield "mlp", "", {}
    yield "gcn-sl-plus", "", {}
    yield "linkx", "", along
    yield "sage", "deep", _DEEP
    yield "fsgnn", "", along
    yield "gcn", "", {}
    yield "sage", "", {}
    if directed:
        yield "gcn-sl-plus", "undirected", {"direction": "undirected"}
        yield "linkx", "undirected", {"direction": "undirected"}
        yield "fsgnn", "undirected", {"direction": "undirected"}
        yield "sage", "out-edges", along
    yield "h2gcn-2", "", {}
    yield "gcn", "deep", {**_DEEP, "residual": True}
    yield "gpr-gnn", "", {}
    yield "acm-gcn", "", {}
    if directed:
        yield "dir-gcn", "", {}


class FitCosts:
    """Estimates for a graph.

    The time grows with the number of features and edges (:data:`PER_ENTRY`), and is multiplied by a factor of the
    machine, the median over the finished fits.
    """

    def __init__(self, graph: Data) -> None:
        self._entries: float = (stored_entries(graph.x) + graph.num_edges) / 1e6

    def least_seconds(self, candidate: Candidate, fits: Iterable[Fit]) -> float:
        """The time that the shortest fit of a candidate should take; 0 before the first fit is finished."""
        ratios = [fit.least_seconds / self._usual(fit.candidate) for fit in fits if fit.fold == 0]
        return statistics.median(ratios) * self._usual(candidate) if ratios else 0.0

    def _usual(self, candidate: Candidate) -> float:
        factor = PER_ENTRY[candidate.method] * (DEEP if candidate.options.get("num_layers", 0) >= DEEP_LAYERS else 1.0)
        return FIXED + factor * self._entries


class Study:
    """Hyper-parameters of one method as Optuna proposes them, none of them twice if they come from ``first``.

    Args:
        space: The search range of each.
        first: What is proposed before all else.
        seed: Of the proposals. It moves on with what is known, lest those after it repeat it.
        known: What was tried before: the hyper-parameters, how good they were after each run, more being better, and
            whether the last of these was reached.
        startup: How many are drawn before they follow what was good.
    """

    def __init__(
        self,
        space: Mapping[str, SearchRange],
        first: Iterable[Mapping[str, Any]],
        *,
        seed: int,
        known: Sequence[tuple[Mapping[str, Any], Sequence[float], bool]] = (),
        startup: int = STARTUP_TRIALS,
    ) -> None:
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._space = space
        self._study = optuna.create_study(
            direction="maximize",
            sampler=optuna.samplers.TPESampler(n_startup_trials=startup, seed=seed + len(known)),
            pruner=optuna.pruners.MedianPruner(n_startup_trials=PATIENT_TRIALS),
        )
        for options, gains, is_complete in known:
            self._add(options, gains, is_complete)
        tried = [dict(options) for options, *_ in known]
        for options in first:
            if options not in tried:
                fixed = {name: value for name, value in options.items() if _is_suggested(space[name], value)}
                self._study.enqueue_trial(fixed)
                tried.append(dict(options))

    def ask(self) -> tuple[optuna.Trial, dict[str, Any]]:
        """A new trial, and its hyper-parameters."""
        trial = self._study.ask()
        return trial, self._suggested(trial)

    def _suggested(self, trial: optuna.trial.BaseTrial) -> dict[str, Any]:
        with warnings.catch_warnings():  # a value that was given may be outside of the range
            warnings.filterwarnings("ignore", ".* out of (the )?range", UserWarning)
            return {name: suggest(trial, name) for name, suggest in self._space.items()}

    def tell(self, trial: optuna.Trial, gain: float | None) -> None:
        """How good a trial was; ``None`` if it failed or was given up."""
        self._study.tell(trial, gain, state=optuna.trial.TrialState.FAIL if gain is None else None)

    def give_up(self, trial: optuna.Trial) -> None:
        """A trial has fallen behind."""
        self._study.tell(trial, state=optuna.trial.TrialState.PRUNED)

    def _add(self, options: Mapping[str, Any], gains: Sequence[float], is_complete: bool) -> None:
        trial = optuna.trial.FixedTrial(dict(options))
        with suppress(ValueError):  # nothing is learned from a value outside of the range
            self._suggested(trial)
            known = optuna.trial.create_trial(
                params=trial.params,
                distributions=trial.distributions,
                value=gains[-1],
                intermediate_values=dict(enumerate(gains)),
                state=optuna.trial.TrialState.COMPLETE if is_complete else optuna.trial.TrialState.PRUNED,
            )
            self._study.add_trial(known)


def _is_suggested(search: SearchRange, value: Any) -> bool:
    """Whether a value can be suggested; one that can't is left to the sampler."""
    return search.values is None or value in search.values


class Proposals:
    """Further candidates: other hyper-parameters of the methods that do best, from one study for each method.

    Args:
        trials: How many candidates are proposed in all.
        seed: Of the suggestions.
    """

    def __init__(self, trials: int, *, seed: int) -> None:
        self._trials, self._seed, self._count = trials, seed, 0
        self._tried: list[tuple[Candidate, float]] = []
        self._studies: dict[str, Study] = {}
        self._open: dict[Candidate, tuple[Study, optuna.Trial]] = {}

    def resume(self, tried: Sequence[tuple[Candidate, float]]) -> None:
        """Go on after what an earlier command has proposed: the candidates, and how good each is."""
        self._tried = [each for each in tried if space_of(each[0].method).keys() <= each[0].options.keys()]
        self._count = max((int(candidate.name.rpartition("#")[2]) for candidate, _ in self._tried), default=0)

    def ask(self, ranking: Sequence[str]) -> Candidate | None:
        """A new candidate of one of the methods, the best first; ``None`` if there have been enough."""
        if self._count >= self._trials or not ranking:
            return None
        method = ranking[TURNS[self._count % len(TURNS)] % len(ranking)]
        self._count += 1
        study = self._study(method)
        trial, options = study.ask()
        candidate = Candidate(f"{find_method(method).title} #{self._count}", method, options)
        self._open[candidate] = study, trial
        return candidate

    def tell(self, candidate: Candidate, gain: float | None) -> None:
        """How good a candidate is, more being better; ``None`` if it failed."""
        if candidate in self._open:
            study, trial = self._open.pop(candidate)
            study.tell(trial, gain)

    def _study(self, method: str) -> Study:
        if method not in self._studies:
            space = space_of(method)
            whole = (find_method(method).with_options(**start).options() for start in starts_of(method))
            known = [(each.options, [gain], True) for each, gain in self._tried if each.method == method]
            first = [{name: options[name] for name in space} for options in whole]
            self._studies[method] = Study(space, first, seed=self._seed, known=known)
        return self._studies[method]
