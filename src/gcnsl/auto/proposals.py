"""What to try besides the portfolio: other hyper-parameters of the methods that promise the largest gain for the time.

Optuna proposes the hyper-parameters of one method (TPE). Which method is next is a bandit's question: the one whose
next setting is expected to improve most on the best contender, per second.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.stats import norm

from gcnsl.auto.candidates import Candidate
from gcnsl.methods import find_method
from gcnsl.methods.registry import space_of, starts_of
from gcnsl.options import Search as SearchRange

if TYPE_CHECKING:
    import optuna

STARTUP_TRIALS = 6
"""So many proposals for a method are drawn before they follow what was good."""
PATIENT_TRIALS = 5
"""None is given up for falling behind before so many are complete."""
PRIOR_TRIALS = 3.0
"""The spread of a method's settings is shrunk to that of all methods by so many trials."""
LEAST_SECONDS = 0.5
"""What a trial costs, however fast the fit."""


class Tried(NamedTuple):
    """What is known of a method."""

    gains: Sequence[float]
    """How good each of its settings is, more being better."""
    seconds: float
    """Mean time of a fit."""
    new: float = 1.0
    """The share of its settings that predict what no other does."""


def expected_gains(tried: Mapping[str, Tried]) -> dict[str, float]:
    r"""By how much the next setting of each method is expected to improve on the best of all, per second.

    .. math:: E = \nu s\,(\varphi(z) + z\,\Phi(z)) / t, \qquad z = (m - b) / s

    with the best gain b of all, the mean m and the standard deviation s of the better half of a method's settings,
    which proposals follow, the share ν of settings that are new and the time t of a fit. Settings that change nothing
    have a small s, and are left alone.
    """
    finite = {name: np.sort(each.gains)[len(each.gains) // 2 :] for name, each in tried.items()}
    finite = {name: gains for name, gains in finite.items() if len(gains) and np.isfinite(gains).all()}
    if not finite:
        return dict.fromkeys(tried, 0.0)
    best = max(gains.max() for gains in finite.values())
    spreads = [gains.var(ddof=1) for gains in finite.values() if len(gains) > 1]
    usual = np.median(spreads) if spreads else np.var(np.concatenate([*finite.values()]))
    found = dict.fromkeys(tried, 0.0)
    for name, gains in finite.items():
        count, own = len(gains) - 1, gains.var(ddof=1) if len(gains) > 1 else 0.0
        s = max(1e-12, float((count * own + PRIOR_TRIALS * usual) / (count + PRIOR_TRIALS)) ** 0.5)
        z, each = (gains.mean() - best) / s, tried[name]
        found[name] = float(each.new * s * (norm.pdf(z) + z * norm.cdf(z)) / (each.seconds + LEAST_SECONDS))
    return found


def new_study(
    space: Mapping[str, SearchRange],
    first: Iterable[Mapping[str, Any]],
    *,
    seed: int,
    known: Sequence[tuple[Mapping[str, Any], Sequence[float], bool]] = (),
    startup: int = STARTUP_TRIALS,
) -> optuna.Study:
    """What proposes hyper-parameters of one method, none of them twice if they come from ``first``.

    Args:
        space: The search range of each.
        first: What is proposed before all else; values that can't be suggested are left to the sampler.
        seed: Of the proposals. It moves on with what is known, lest those after it repeat it.
        known: What was tried before: the hyper-parameters, how good they were after each fold, more being better, and
            whether the last of these was reached.
        startup: How many are drawn before they follow what was good.
    """
    import optuna  # workers need nothing of it

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(
        direction="maximize",
        sampler=optuna.samplers.TPESampler(n_startup_trials=startup, seed=seed + len(known)),
        pruner=optuna.pruners.MedianPruner(n_startup_trials=PATIENT_TRIALS),
    )
    states = optuna.trial.TrialState.COMPLETE, optuna.trial.TrialState.PRUNED
    tried = [dict(options) for options, *_ in known]
    for options, gains, is_complete in known:
        trial = optuna.trial.FixedTrial(dict(options))
        with suppress(ValueError):  # nothing is learned from a value outside of the range
            suggested(trial, space)
            was: dict[str, Any] = {"params": trial.params, "distributions": trial.distributions, "value": gains[-1]}
            was |= {"intermediate_values": dict(enumerate(gains))}
            study.add_trial(optuna.trial.create_trial(state=states[not is_complete], **was))
    for each in first:
        if each not in tried:
            study.enqueue_trial({k: v for k, v in each.items() if v in (space[k].values or (v,))})
            tried.append(dict(each))
    return study


def suggested(trial: optuna.trial.BaseTrial, space: Mapping[str, SearchRange]) -> dict[str, Any]:
    """The hyper-parameters of a trial."""
    with warnings.catch_warnings():  # a value that was given may be outside of the range
        warnings.filterwarnings("ignore", ".* out of (the )?range", UserWarning)
        return {name: suggest(trial, name) for name, suggest in space.items()}


class Proposals:
    """Further candidates, from one study for each method.

    Args:
        trials: How many candidates are proposed in all.
        seed: Of the suggestions.
        tried: What an earlier command has proposed, and how good each is.
    """

    def __init__(self, trials: int, *, seed: int, tried: Sequence[tuple[Candidate, float]] = ()) -> None:
        self._trials, self._seed, self._studies = trials, seed, dict[str, "optuna.Study"]()
        self._tried = [each for each in tried if space_of(each[0].method).keys() <= each[0].options.keys()]
        self._count = max((int(candidate.name.rpartition("#")[2]) for candidate, _ in self._tried), default=0)

    def ask(self, tried: Mapping[str, Tried]) -> tuple[Candidate, optuna.Trial] | None:
        """A new candidate of the method with the largest expected gain; ``None`` if there have been enough."""
        if self._count >= self._trials or not tried:
            return None
        gains = expected_gains(tried)
        method = max(gains, key=lambda name: gains[name])
        self._count += 1
        space = space_of(method)
        if method not in self._studies:
            starts = (find_method(method).with_options(**start).options() for start in starts_of(method))
            known = [(each.options, [gain], True) for each, gain in self._tried if each.method == method]
            first = [{name: options[name] for name in space} for options in starts]
            self._studies[method] = new_study(space, first, seed=self._seed, known=known)
        trial = self._studies[method].ask()
        return Candidate(f"{find_method(method).title} #{self._count}", method, suggested(trial, space)), trial
