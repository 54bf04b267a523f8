"""Further candidates: other hyper-parameters of a method, as Optuna proposes them. Workers need nothing of it."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import optuna

from gcnsl.auto.candidates import Candidate
from gcnsl.methods import find_method
from gcnsl.methods.registry import space_of, starts_of
from gcnsl.options import Search as SearchRange

TURNS = (0, 1, 0, 2, 0, 1)
"""Whose turn it is, by rank: the best method is tried most often."""
STARTUP_TRIALS = 6
"""So many proposals for a method are drawn before they follow what was good."""
PATIENT_TRIALS = 5
"""None is given up for falling behind before so many are complete."""


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
