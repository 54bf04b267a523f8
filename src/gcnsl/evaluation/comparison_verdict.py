"""What a comparison of methods comes to, in a sentence or three."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gcnsl.evaluation.majority import MAJORITY
from gcnsl.evaluation.statistics import Verdict


@dataclass(frozen=True)
class Difference:
    """The mean difference between two methods, on the runs that both have finished; it is positive for a lead.

    Interval, p-value and verdict are explained in :mod:`gcnsl.evaluation.statistics`: they are corrected for the number
    of methods, and the first two are NaN for a single run. ``runs_needed`` estimates how many runs, each on a split of
    its own, would decide what is undecided; ``None`` if no number would.
    """

    better: str
    worse: str
    mean: float
    half_width: float
    p: float
    verdict: Verdict
    runs_needed: int | None


def verdict_on(best: str, leads: Sequence[Difference], *, counted: str = "runs", one_split: bool = False) -> str:
    """Say what the best method's leads over all others come to.

    Args:
        best: The name of the best method.
        leads: Its leads over the others.
        counted: ``"runs"`` or ``"splits"``, whichever would have to be more to settle what is undecided.
        one_split: Whether all runs are on one split, so that noise is what seeds do.
    """
    if not leads:
        return f"{best} has nothing to be compared with."
    if any(math.isnan(lead.mean) for lead in leads):
        return "The metric is not defined on some splits, whose test nodes lack a class: choose another metric."
    if any(math.isnan(lead.p) for lead in leads):
        return f"{best} leads, but a single run can't tell a lead from noise: use more runs."
    clear, equal, undecided = (
        [lead for lead in leads if lead.verdict == kind] for kind in ("clear", "equal", "undecided")
    )
    possible = [lead for lead in undecided if lead.runs_needed is not None]
    hopeless = [lead for lead in undecided if lead.runs_needed is None]
    noise = "noise between seeds" if one_split else "noise"
    sentences = [f"{best} leads; its lead over {_with_p(clear)} is more than {noise}." if clear else f"{best} leads."]
    if best == MAJORITY:
        sentences[0] = "No method does better than always guessing the most frequent class."
    if equal:
        sentences.append(f"{_listed(lead.worse for lead in equal)} {_is(equal)} within a point of it.")
    if possible:
        needed = _listed(f"{lead.runs_needed:,}" for lead in possible)
        unclear = f"{_with_p(possible)} {_is(possible)} not distinguishable from it with so few {counted}"
        sentences.append(f"{unclear}; about {needed} would settle it.")
    if hopeless:
        unclear = f"{_with_p(hopeless)} {_is(hopeless)} not distinguishable from it"
        sentences.append(f"{unclear}, and no number of runs on such splits would settle it.")
    return " ".join(sentences)


def p_text(value: float, *, equals: bool = False) -> str:
    """A p-value as statisticians write it: .03, < .001."""
    if math.isnan(value):
        return "–"
    if value < 0.001:
        return "< .001"
    text = "1" if value >= 0.995 else f"{value:.{2 if value >= 0.01 else 3}f}".removeprefix("0")
    return f"= {text}" if equals else text


def _is(leads: Sequence[Difference]) -> str:
    return "is" if len(leads) == 1 else "are"


def _with_p(leads: Iterable[Difference]) -> str:
    return _listed(f"{lead.worse} (p {p_text(lead.p, equals=True)})" for lead in leads)


def _listed(texts: Iterable[str]) -> str:
    *first, last = texts
    return " and ".join(filter(None, (", ".join(first), last)))
