"""Whether our numbers confirm what is claimed: computed from the runs, nothing written by hand.

Two variants are compared run by run. Training sets of different runs overlap, so the variance of the mean difference is
corrected as in Nadeau and Bengio (2003),

    s² · (1/n + n_test / n_train),

and a difference counts only if its 95 % interval excludes zero (:func:`gcnsl.evaluation.paired_difference`). "No worse"
counts as shown only if that interval reaches zero and excludes a loss of more than :data:`EQUAL` points: too few runs
to see a difference are no proof that there is none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import fmean
from typing import Literal, NamedTuple, get_args

from gcnsl.datasets.splits import SHARES
from gcnsl.evaluation.statistics import PairedDifference, paired_difference
from gcnsl.experiments import paper
from gcnsl.experiments.beyond import OTHERS, WHOLE, WIKIPEDIA, parts_of
from gcnsl.experiments.plan import COMPARED, DEPTHS, MERGES
from gcnsl.experiments.tables import Table, TableCell, column_label, number_text
from gcnsl.methods import METHODS

Verdict = Literal["holds", "holds so far", "holds in part", "not shown", "mostly does not hold", "does not hold"]
EQUAL = 1.0
"""A variant that is at most this many points of accuracy worse is called no worse."""
FASTER = 1.1
"""A method is called faster if it is at least this many times as fast: times vary."""
METHOD = (
    "Variants are compared run by run; a difference counts if its 95 % interval, corrected for overlapping training "
    f"sets, excludes zero. “No worse” counts if that interval reaches zero and excludes a loss of more than "
    f"{EQUAL:g} point, “faster” from {FASTER:g} times."
)
"""How claims are judged, for readers."""


class Comparison(NamedTuple):
    """A claim, the paper's or ours, that some rows are better than others in some columns, or no worse.

    It is about one experiment, and rows and columns are those of its plan; ``{}`` stands for either GCN-SL.
    """

    source: str
    text: str
    more: Sequence[str]
    less: Sequence[str]
    columns: Sequence[str]
    allow_equal: bool = False
    of_paper: bool = True


def _of_parts() -> Iterator[Comparison]:
    """What each part of GCN-SL+ is worth: that it helps where the learned graph should, and does no harm elsewhere."""
    parts = {
        "-neighbours": "The learned graph on neighbours",
        "-contrast": "The contrastive term",
        "-structure": "The structure branch",
        "-directions": "Keeping directions",
    }
    source = "parts of GCN-SL+"
    without, neither = (f"{WHOLE} {part}" for part in ("-structure", "-links"))
    text = "The learned graph on neighbours alone, without the structure branch, helps on Chameleon and Squirrel"
    yield Comparison(source, text, [without], [neither], _WIKIPEDIA, of_paper=False)
    for part, name in parts.items():
        row = f"{WHOLE} {part}"
        for text, places, allow_equal in (
            (f"{name} makes GCN-SL+ better on Chameleon and Squirrel", WIKIPEDIA, False),
            (f"{name} does not make GCN-SL+ worse on other graphs", OTHERS, True),
        ):
            columns = [place.column for place in places if row in dict(parts_of(WHOLE, place))]
            yield Comparison(source, text, [WHOLE], [row], columns, allow_equal, of_paper=False)


_ALL, _LOW = tuple(paper.DATASETS), paper.WEBKB + paper.WIKIPEDIA
_BOLD = [column for column, row in paper.BOLD.items() if row == "gcn-sl-cc"]
_OTHERS = [row for row in COMPARED if row not in MERGES]
_EDGES = ("gcn", "gat", "geom-gcn", "mixhop")
_BEST = "GCN-SL_cc is better than every other method on the graphs where the paper prints it in bold"
_WORSE = "GCN, GAT, Geom-GCN and MixHop are worse than the MLP on the {} graphs"
_HIGHER = "The graph that {} learns is of {} homophily than {}"
_FEATURED = "The graph that GCN-SL learns among nodes with features is of higher homophily than the original among them"
_SPECTRAL = "The spectral features F make GCN-SL better, on all graphs"
_FEW, _MANY = DEPTHS[0], DEPTHS[-1]
_DEEP = f"A GCN of {_MANY} layers is worse than one of {_FEW}"
_ROUNDS = f"GCN-SL_cc with K = {_MANY} is no worse than with K = {_FEW}"
_LEADS = "GCN-SL+ is better than every other method on Chameleon and Squirrel with directions"
_RIVALS = [name for name in METHODS if name != WHOLE]
_WIKIPEDIA = [place.column for place in WIKIPEDIA]
COMPARISONS: Mapping[str, Sequence[Comparison]] = {
    "accuracy": [
        Comparison("table of accuracies", _BEST, ["gcn-sl-cc"], _OTHERS, _BOLD),
        Comparison("section 4.6", "GCN-SL is better than H2GCN on all graphs", MERGES, ["h2gcn-1", "h2gcn-2"], _ALL),
        Comparison("section 4.6", _WORSE.format("WebKB"), ["mlp"], _EDGES, paper.WEBKB),
        Comparison("section 4.6", _WORSE.format("Wikipedia"), ["mlp"], _EDGES, paper.WIKIPEDIA),
    ],
    "ablation": [
        Comparison("section 4.4", text, [f"{{}} {more}"], [f"{{}} {less}"], graphs, allow_equal)
        for text, more, less, graphs, allow_equal in (
            ("A* helps on the WebKB and Wikipedia graphs", "A+A*", "A", _LOW, False),
            ("A* does not hurt on the citation graphs", "A+A*", "A", paper.CITATION, True),
            ("A is very important on the citation graphs", "A", "neither", paper.CITATION, False),
            ("A is of little use, or even bad, on the WebKB graphs", "neither", "A", paper.WEBKB, True),
            ("A* is more reliable than A on graphs of low homophily", "A*", "A", _LOW, False),
        )
    ],
    "spectral": [Comparison("section 4.5", _SPECTRAL, ["{} with F"], ["{} without F"], _ALL)],
    "homophily": [
        *(
            Comparison("section 4.4", text, [more], [less], _ALL)
            for text, more, less in (
                (_HIGHER.format("GCN-SL", "much higher", "the original"), "gcn-sl-cc A*", "original"),
                (_HIGHER.format("NLGNN", "much higher", "the original"), "nlgnn", "original"),
                ("Training raises the homophily of A*", "gcn-sl-cc A*", "initial A*"),
                (_HIGHER.format("GCN-SL", "higher", "NLGNN's"), "gcn-sl-cc A*", "nlgnn"),
            )
        ),
        Comparison(
            "learned graph", _FEATURED, ["gcn-sl-cc A*, featured"], ["original, featured"], _ALL, of_paper=False
        ),
    ],
    "depth": [
        Comparison("section 4.6", _DEEP, [f"gcn-{_FEW}"], [f"gcn-{_MANY}"], ["cora"]),
        Comparison("section 4.6", _ROUNDS, [f"gcn-sl-cc-{_MANY}"], [f"gcn-sl-cc-{_FEW}"], ["cora"], allow_equal=True),
    ],
    "runtime": [
        Comparison("section 4.5", "ESC is faster than SC", ["esc"], ["sc"], _ALL),
        Comparison("section 4.5", "ESC-ANCH is faster than ESC", ["esc-anch"], ["esc"], _ALL),
    ],
    "beyond": [
        *_of_parts(),
        Comparison("comparison with equal budgets", _LEADS, [WHOLE], _RIVALS, _WIKIPEDIA, of_paper=False),
    ],
}
"""The claims by experiment; those of ``runtime`` say that rows are faster."""


@dataclass(frozen=True)
class Finding:
    """What the runs say about a claim on one graph: for it, against it, or ``None`` if the difference may be noise."""

    text: str
    outcome: bool | None


@dataclass(frozen=True)
class Claim:
    """A claim of the paper, or ours on how close we come to it, and what we find in one variant of an experiment.

    When all runs are done, there are as many findings as ``planned``, one for each graph and pair of rows.
    """

    text: str
    source: str
    variant: str
    findings: tuple[Finding, ...]
    planned: int
    of_paper: bool = True

    @property
    def verdict(self) -> Verdict:
        """It holds if all findings are for it, and does not if some are against it and none is for it."""
        outcomes = [finding.outcome for finding in self.findings]
        good, bad = outcomes.count(True), outcomes.count(False)
        if good == len(outcomes):
            return "holds" if len(outcomes) >= self.planned else "holds so far"
        if good:
            return "holds in part" if good >= bad else "mostly does not hold"
        return "does not hold" if bad else "not shown"

    @property
    def origin(self) -> str:
        """Where the claim comes from, in words."""
        return f"{self.source} of the paper" if self.of_paper else f"our measure of the {self.source}"

    @property
    def summary(self) -> str:
        """How many findings are for it, against it and within noise."""
        outcomes = [finding.outcome for finding in self.findings]
        names = {"for it": True, "against it": False, "within noise": None}
        counts = {name: outcomes.count(outcome) for name, outcome in names.items()}
        told = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
        missing = f"{self.planned - len(outcomes)} not run" if len(outcomes) < self.planned else ""
        return f"{told} ({', '.join(filter(None, (f'of {self.planned}', missing, self.variant)))})"


def difference(more: TableCell, less: TableCell) -> PairedDifference | None:
    """The mean difference over the runs that both cells have, and its corrected interval; ``None`` below two runs.

    The ratio n_test / n_train is its mean over these runs. Runs of version 0.1.0 did not store ``train_nodes`` and
    ``test_nodes``; if none of the runs did, the ratio is that of :data:`gcnsl.datasets.splits.SHARES`.
    """
    common = sorted(more.values.keys() & less.values.keys())
    if len(common) < 2:
        return None
    nodes = [result.metrics for cell in (more, less) for result in cell.good if result.spec.run in common]
    ratios = [metrics["test_nodes"] / metrics["train_nodes"] for metrics in nodes if "train_nodes" in metrics]
    test_share = fmean(ratios) if ratios else SHARES[2] / SHARES[0]
    return paired_difference([more.values[run] - less.values[run] for run in common], test_share)


def judge(tables: Sequence[Table]) -> list[Claim]:
    """Judge the paper's claims that these tables have results for."""
    claims: list[Claim] = []
    for table in tables:
        claims += [_reached(table)] if table.experiment.name == "accuracy" else []
        compare = _faster if table.experiment.unit == "s" else _compare
        claims += [compare(table, claimed) for claimed in COMPARISONS.get(table.experiment.name, ())]
    return [claim for claim in claims if claim.findings]


def worst_first(claims: Iterable[Claim]) -> list[list[Claim]]:
    """The claims, grouped by text, in the order of the verdict on the first variant of each, worst first."""
    together: dict[str, list[Claim]] = {}
    for claim in claims:
        together.setdefault(claim.text, []).append(claim)
    order = get_args(Verdict)
    return sorted(together.values(), key=lambda same: -order.index(same[0].verdict))


def by_origin(claims: Iterable[Claim]) -> dict[str, list[list[Claim]]]:
    """The same by title: the paper's claims, then ours. A title without claims is left out."""
    together = worst_first(claims)
    of_paper, ours = ([same for same in together if same[0].of_paper is wanted] for wanted in (True, False))
    titled = {"What the paper claims": of_paper, "What we measured beside it": ours}
    return {title: found for title, found in titled.items() if found}


def not_run(claims: Iterable[Claim]) -> list[str]:
    """The paper's claims that are not among the judged ones, because they have no runs yet."""
    judged = {claim.text for claim in claims}
    compared = (claimed for same in COMPARISONS.values() for claimed in same)
    return [claimed.text for claimed in compared if claimed.of_paper and claimed.text not in judged]


def tally(claims: Sequence[Claim]) -> dict[str, int]:
    """How many of the paper's claims hold, and so on; each claim is counted once.

    A claim holds if all of its variants do. It does not hold if none of them does, not even in part, and one speaks
    against it.
    """
    kinds = ("hold", "hold in part", "can't be told from noise", "do not hold, or mostly not")
    counts = dict.fromkeys(kinds, 0)
    for same in worst_first(claims):
        if same[0].of_paper:
            counts[_kind({claim.verdict for claim in same})] += 1
    return counts | {"have no runs yet": len(not_run(claims))}


def _kind(verdicts: set[Verdict]) -> str:
    """How a claim with these verdicts on its variants is counted."""
    if verdicts == {"holds"}:
        return "hold"
    if verdicts == {"not shown"}:
        return "can't be told from noise"
    unfavourable: set[Verdict] = {"not shown", "mostly does not hold", "does not hold"}
    return "do not hold, or mostly not" if verdicts <= unfavourable else "hold in part"


def to_markdown(claims: Iterable[Claim]) -> str:
    """The claims as a list in Markdown, with the findings against them; empty if there are none."""
    lines, explained = [], f"{METHOD}\n\n"
    for title, together in by_origin(claims).items():
        lines.append(f"### {title}\n\n{explained}".rstrip("\n") + "\n")
        explained = ""
        for same in together:
            lines.append(f"- {same[0].text} ({same[0].origin}):")
            for claim in same:
                against = [finding.text for finding in claim.findings if finding.outcome is False]
                lines.append(f"  - **{claim.verdict}**: {claim.summary}" + (". Against it:" if against else ""))
                lines += [f"    - {text}" for text in against]
        lines.append("")
    return "\n".join(line.replace("A*", r"A\*") for line in lines)


def _compare(table: Table, claimed: Comparison) -> Claim:
    findings, named = [], product(MERGES, claimed.more, claimed.less)
    pairs = list(dict.fromkeys((more.format(method), less.format(method)) for method, more, less in named))
    for column, (one, other) in product(claimed.columns, pairs):
        better, worse = table.cells.get((one, column)), table.cells.get((other, column))
        delta = difference(better, worse) if better and worse else None
        if better is None or worse is None or delta is None:
            continue
        common = better.values.keys() & worse.values.keys()
        averages = [fmean(cell.values[run] for run in common) for cell in (better, worse)]
        means = " : ".join(number_text(mean, None, table.experiment.unit) for mean in averages)
        few = "" if len(common) == len(better.planned.runs) else f", n = {len(common)}"
        names = f"{column_label(column)}: {table.row_label(one)} vs {table.row_label(other)}"
        told = f"{names}, {means} ({delta.mean:+.2f} ± {delta.half_width:.2f}{few})"
        findings.append(Finding(told, _outcome(delta, allow_equal=claimed.allow_equal)))
    planned = len(claimed.columns) * len(pairs)
    return Claim(claimed.text, claimed.source, table.variant, tuple(findings), planned, claimed.of_paper)


def _outcome(delta: PairedDifference, *, allow_equal: bool) -> bool | None:
    """Whether a difference is above zero, or not below where equal is enough; ``None`` if it may be either."""
    low, high = delta.mean - delta.half_width, delta.mean + delta.half_width
    if high < 0:
        return False
    return True if low > 0 or (allow_equal and low >= -EQUAL) else None


def _reached(table: Table) -> Claim:
    findings = []
    for column, row in product(table.columns, MERGES):
        cell = table.cells.get((row, column))
        if cell and cell.planned.paper and cell.reached is not None:
            ours, printed = number_text(cell.mean, cell.std, "%"), number_text(*cell.planned.paper, "%")
            text = f"{column_label(column)}, {table.row_label(row)}: {ours}, the paper's {printed}"
            findings.append(Finding(text, cell.reached))
    text = "GCN-SL's accuracies are reached: no more than one of the paper's standard deviations short, or above"
    planned = len(MERGES) * len(paper.DATASETS)
    return Claim(text, "table of accuracies", table.variant, tuple(findings), planned, of_paper=False)


def _faster(table: Table, claimed: Comparison) -> Claim:
    findings = []
    (fast,), (slow,) = claimed.more, claimed.less
    for column in claimed.columns:
        quick, long = (cell.mean if (cell := table.cells.get((row, column))) else None for row in (fast, slow))
        if quick is not None and long is not None:
            seconds = " s against ".join(number_text(mean, None, "s") for mean in (quick, long))
            text = f"{column_label(column)}: {seconds} s, {long / quick:.3g} times"
            beyond_noise = max(quick, long) >= FASTER * min(quick, long)
            findings.append(Finding(text, quick < long if beyond_noise else None))
    return Claim(claimed.text, claimed.source, table.variant, tuple(findings), len(claimed.columns))
