"""Further candidates: other hyper-parameters of the methods that do best, as Optuna suggests them."""

from __future__ import annotations

from collections.abc import Sequence

import optuna

from gcnsl.methods import find_method
from gcnsl.methods.registry import space_of, starts_of
from gcnsl.selection.candidates import Candidate

TURNS = (0, 1, 0, 2, 0, 1)
"""Whose turn it is, by rank: the best method is tried most often."""
STARTUP_TRIALS = 6


class Proposals:
    """One Optuna study for each method.

    Args:
        trials: How many candidates are proposed in all.
        seed: Of the suggestions.
    """

    def __init__(self, trials: int, *, seed: int) -> None:
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._trials, self._seed, self._count = trials, seed, 0
        self._studies: dict[str, optuna.Study] = {}
        self._open: dict[Candidate, tuple[optuna.Study, optuna.Trial]] = {}

    def resume(self, tried: Sequence[tuple[Candidate, float]]) -> None:
        """Go on after what an earlier command has proposed: the candidates, and how good each is."""
        for candidate, merit in tried:
            if not space_of(candidate.method).keys() <= candidate.options.keys():
                continue  # it was in the portfolio of an earlier version
            trial = optuna.trial.FixedTrial(candidate.options)
            for name, suggest in space_of(candidate.method).items():
                suggest(trial, name)
            known = optuna.trial.create_trial(params=trial.params, distributions=trial.distributions, value=merit)
            self._study(candidate.method).add_trial(known)
            self._count = max(self._count, int(candidate.name.rpartition("#")[2]))

    def ask(self, ranking: Sequence[str]) -> Candidate | None:
        """A new candidate of one of the methods, the best first; ``None`` if there have been enough."""
        if self._count >= self._trials or not ranking:
            return None
        method = ranking[TURNS[self._count % len(TURNS)] % len(ranking)]
        self._count += 1
        study = self._study(method)
        trial = study.ask()
        options = {name: suggest(trial, name) for name, suggest in space_of(method).items()}
        candidate = Candidate(f"{find_method(method).title} #{self._count}", method, options)
        self._open[candidate] = study, trial
        return candidate

    def tell(self, candidate: Candidate, merit: float | None) -> None:
        """How good a candidate is, more being better; ``None`` if it failed."""
        if candidate in self._open:
            study, trial = self._open.pop(candidate)
            study.tell(trial, merit, state=optuna.trial.TrialState.FAIL if merit is None else None)

    def _study(self, method: str) -> optuna.Study:
        if method not in self._studies:
            sampler = optuna.samplers.TPESampler(n_startup_trials=STARTUP_TRIALS, seed=self._seed)
            self._studies[method] = optuna.create_study(direction="maximize", sampler=sampler)
            for start in starts_of(method):
                options = find_method(method).with_options(**start).options()
                self._studies[method].enqueue_trial({name: options[name] for name in space_of(method)})
        return self._studies[method]
