"""What the paper claims, and whether our numbers bear it out: computed from the runs, nothing of it written by hand.

Two variants are compared run by run. Training sets of different runs overlap, so the variance of the mean difference is
taken with the correction of Nadeau and Bengio (2003),

    s² · (1/n + n_test / n_train),

and a difference counts only if its 95 % interval does not hold zero. "No worse" counts as shown only if that interval
ends no more than :data:`EQUAL` points below zero: too few runs to see a difference are no proof that there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import fmean, variance
from typing import Literal, get_args

from scipy import stats

from gcnsl.datasets.splits import SHARES
from gcnsl.experiments import paper
from gcnsl.experiments.labels import column_label
from gcnsl.experiments.plan import COMPARED, DEPTHS, MERGES, ablation_row
from gcnsl.experiments.tables import Table, TableCell, number_text

Verdict = Literal["holds", "holds so far", "holds in part", "not shown", "mostly does not hold", "does not hold"]
EQUAL = 1.0
"""By so many points of accuracy a variant may fall short and still be called no worse."""
FASTER = 1.1
"""So many times as fast is faster: times vary."""
METHOD = (
    "Variants are compared run by run; a difference counts if its 95 % interval, corrected for overlapping training "
    f"sets, excludes zero. “No worse” counts if that interval excludes a loss of more than {EQUAL:g} point, “faster” "
    f"from {FASTER:g} times."
)
"""How claims are judged, for readers."""
Pairs = Callable[[str], Sequence[tuple[str, str]]]
"""For a graph the rows to compare: the first is claimed to be more."""

_TEST_OVER_TRAIN = SHARES[2] / SHARES[0]


@dataclass(frozen=True)
class Finding:
    """What the runs say about a claim on one graph: for it, against it, or (``None``) nothing beyond noise."""

    text: str
    outcome: bool | None


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, and what we find in one variant of an experiment.

    Attributes:
        text: What the paper says, in short.
        source: Where it says so.
        variant: Of the experiment: the kind of split of our runs, and whose hyper-parameters.
        findings: One for each graph and variant.
        planned: How many there are to be.
        of_paper: Whether it is the paper's sentence; else it is ours about how near we came.
    """

    text: str
    source: str
    variant: str
    findings: tuple[Finding, ...]
    planned: int
    of_paper: bool = True

    @property
    def verdict(self) -> Verdict:
        """All for it: holds. None for it, but some against: does not hold. Nothing either way: not shown."""
        outcomes = [finding.outcome for finding in self.findings]
        good, bad = outcomes.count(True), outcomes.count(False)
        if good == len(outcomes):
            return "holds" if len(outcomes) >= self.planned else "holds so far"
        if good:
            return "holds in part" if good >= bad else "mostly does not hold"
        return "does not hold" if bad else "not shown"

    @property
    def origin(self) -> str:
        """Where it comes from, in words."""
        return f"{self.source} of the paper" if self.of_paper else f"our measure of the {self.source}"

    @property
    def summary(self) -> str:
        """How often, in numbers."""
        outcomes = [finding.outcome for finding in self.findings]
        counts = {
            "for it": outcomes.count(True),
            "against it": outcomes.count(False),
            "within noise": outcomes.count(None),
        }
        told = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
        missing = f"{self.planned - len(outcomes)} not run" if len(outcomes) < self.planned else ""
        return f"{told} ({', '.join(filter(None, (f'of {self.planned}', missing, self.variant)))})"


def common_runs(one: TableCell, other: TableCell) -> list[int]:
    """The runs that both have."""
    return sorted(one.values.keys() & other.values.keys())


def difference(more: TableCell, less: TableCell) -> tuple[float, float] | None:
    """Mean difference over the runs that both have, and half its corrected 95 % interval.

    ``None`` where they have fewer than two runs in common.
    """
    common = common_runs(more, less)
    if len(common) < 2:
        return None
    deltas = [more.values[run] - less.values[run] for run in common]
    spread = variance(deltas) * (1 / len(deltas) + _TEST_OVER_TRAIN)
    return fmean(deltas), float(stats.t.ppf(0.975, len(deltas) - 1)) * spread**0.5


def judge(tables: Sequence[Table]) -> list[Claim]:
    """The paper's claims that these tables have something to say about."""
    about = [table for table in tables if table.experiment.name in _CLAIMS]
    return [claim for table in about for claim in _CLAIMS[table.experiment.name](table) if claim.findings]


def worst_first(claims: Iterable[Claim]) -> list[list[Claim]]:
    """The claims, what was found in each variant together; first those that fare worst in the first of them."""
    together: dict[str, list[Claim]] = {}
    for claim in claims:
        together.setdefault(claim.text, []).append(claim)
    order = get_args(Verdict)
    return sorted(together.values(), key=lambda same: -order.index(same[0].verdict))


def to_markdown(claims: Iterable[Claim]) -> str:
    """The claims as a list in Markdown, with the numbers that speak against them; nothing if there are none."""
    claims = list(claims)
    if not claims:
        return ""
    lines = ["### What the paper claims\n", f"{METHOD}\n"]
    for same in worst_first(claims):
        lines.append(f"- {same[0].text} ({same[0].origin}):")
        for claim in same:
            against = [finding.text for finding in claim.findings if finding.outcome is False]
            lines.append(f"  - **{claim.verdict}**: {claim.summary}" + (". Against it:" if against else ""))
            lines += [f"    - {text}" for text in against]
    return "\n".join(line.replace("A*", r"A\*") for line in lines) + "\n"


def _versus(
    table: Table, text: str, source: str, pairs: Pairs, columns: Sequence[str], *, allow_equal: bool = False
) -> Claim:
    """The claim that one row is more than another, or at least no less, on each of the graphs."""
    compared = [(column, one, other) for column in columns for one, other in pairs(column)]
    findings = []
    for column, one, other in compared:
        more, less = table.cells.get((one, column)), table.cells.get((other, column))
        delta = difference(more, less) if more and less else None
        if more is None or less is None or delta is None:
            continue
        common = common_runs(more, less)
        means = (
            number_text(fmean(cell.values[run] for run in common), None, table.experiment.unit) for cell in (more, less)
        )
        few = "" if len(common) == len(more.cell.runs) else f", n = {len(common)}"
        names = f"{column_label(column)}: {table.row_label(one)} vs {table.row_label(other)}"
        told = f"{names}, {' : '.join(means)} ({delta[0]:+.2f} ± {delta[1]:.2f}{few})"
        findings.append(Finding(told, _outcome(*delta, allow_equal=allow_equal)))
    return Claim(text, source, table.variant, tuple(findings), len(compared))


def _outcome(mean: float, half: float, *, allow_equal: bool) -> bool | None:
    """Whether a difference is more than zero, or no less where equals will do; ``None`` if it may be either."""
    if mean + half < 0:
        return False
    return True if mean - half > 0 or (allow_equal and mean - half >= -EQUAL) else None


def _accuracy(table: Table) -> Iterator[Claim]:
    reached = [
        Finding(
            f"{column_label(column)}, {table.row_label(row)}: {number_text(cell.mean, cell.std, '%')}, "
            f"the paper's {number_text(*cell.cell.paper, '%')}",
            cell.reached,
        )
        for column in table.columns
        for row in MERGES
        if (cell := table.cells.get((row, column))) and cell.cell.paper and cell.reached is not None
    ]
    yield Claim(
        "GCN-SL's accuracies are reached: no more than one of the paper's standard deviations short, or above",
        "table of accuracies",
        table.variant,
        tuple(reached),
        planned=len(MERGES) * len(paper.DATASETS),
        of_paper=False,
    )

    def pairs(more: Sequence[str], less: Sequence[str]) -> Pairs:
        return lambda _: list(product(more, less))

    rivals = [row for row in COMPARED if row not in MERGES]
    printed_best = [column for column, row in paper.BOLD.items() if row == "gcn-sl-cc"]
    text = "GCN-SL_cc is better than every other method on the graphs where the paper prints it in bold"
    yield _versus(table, text, "table of accuracies", pairs(["gcn-sl-cc"], rivals), printed_best)
    text = "GCN-SL is better than H2GCN on all graphs"
    yield _versus(table, text, "section 4.6", pairs(MERGES, ["h2gcn-1", "h2gcn-2"]), list(paper.DATASETS))
    worse = pairs(["mlp"], ["gcn", "gat", "geom-gcn", "mixhop"])
    for kind, columns in (("WebKB", paper.WEBKB), ("Wikipedia", paper.WIKIPEDIA)):
        text = f"GCN, GAT, Geom-GCN and MixHop are worse than the MLP on the {kind} graphs"
        yield _versus(table, text, "section 4.6", worse, columns)


def _ablation(table: Table) -> Iterator[Claim]:
    neither, learned, given, both = (
        [ablation_row(method, *used) for method in MERGES]
        for used in ((False, False), (False, True), (True, False), (True, True))
    )

    def pairs(more: list[str], less: list[str]) -> Pairs:
        return lambda _: list(zip(more, less, strict=True))

    where = "section 4.4"
    text = "A* helps on the WebKB and Wikipedia graphs"
    yield _versus(table, text, where, pairs(both, given), paper.WEBKB + paper.WIKIPEDIA)
    text = "A* does not hurt on the citation graphs"
    yield _versus(table, text, where, pairs(both, given), paper.CITATION, allow_equal=True)
    text = "A is very important on the citation graphs"
    yield _versus(table, text, where, pairs(given, neither), paper.CITATION)
    text = "A is of little use, or even bad, on the WebKB graphs"
    yield _versus(table, text, where, pairs(neither, given), paper.WEBKB, allow_equal=True)
    text = "A* is more reliable than A on graphs of low homophily"
    yield _versus(table, text, where, pairs(learned, given), paper.WEBKB + paper.WIKIPEDIA)


def _spectral(table: Table) -> Iterator[Claim]:
    pairs = [(f"{method} with F", f"{method} without F") for method in MERGES]
    text = "The spectral features F make GCN-SL better, on all graphs"
    yield _versus(table, text, "section 4.5", lambda _: pairs, list(paper.DATASETS))


def _homophily(table: Table) -> Iterator[Claim]:
    def claim(text: str, more: str, less: str) -> Claim:
        return _versus(table, text, "section 4.4", lambda _: [(more, less)], list(paper.DATASETS))

    learned = "gcn-sl-cc A*"
    yield claim("The graph that GCN-SL learns is of much higher homophily than the original", learned, "original")
    yield claim("The graph that NLGNN learns is of much higher homophily than the original", "nlgnn", "original")
    yield claim("Training raises the homophily of A*", learned, "initial A*")
    yield claim("The graph that GCN-SL learns is of higher homophily than NLGNN's", learned, "nlgnn")


def _depth(table: Table) -> Iterator[Claim]:
    shallow, deep = DEPTHS[0], DEPTHS[-1]
    text = f"A GCN of {deep} layers is worse than one of {shallow}"
    yield _versus(table, text, "section 4.6", lambda _: [(f"gcn-{shallow}", f"gcn-{deep}")], ["cora"])
    text = f"GCN-SL_cc with K = {deep} is no worse than with K = {shallow}"
    pair = [(f"gcn-sl-cc-{deep}", f"gcn-sl-cc-{shallow}")]
    yield _versus(table, text, "section 4.6", lambda _: pair, ["cora"], allow_equal=True)


def _runtime(table: Table) -> Iterator[Claim]:
    for fast, slow in (("esc", "sc"), ("esc-anch", "esc")):
        findings = []
        for column in table.columns:
            quick, long = (table.cells[row, column].mean for row in (fast, slow))
            if quick is not None and long is not None:
                seconds = " s against ".join(number_text(mean, None, "s") for mean in (quick, long))
                text = f"{column_label(column)}: {seconds} s, {long / quick:.3g} times"
                beyond_noise = max(quick, long) >= FASTER * min(quick, long)
                findings.append(Finding(text, quick < long if beyond_noise else None))
        names = f"{table.row_label(fast)} is faster than {table.row_label(slow)}"
        yield Claim(names, "section 4.5", table.variant, tuple(findings), len(paper.DATASETS))


_CLAIMS: Mapping[str, Callable[[Table], Iterator[Claim]]] = {
    "accuracy": _accuracy,
    "ablation": _ablation,
    "spectral": _spectral,
    "homophily": _homophily,
    "depth": _depth,
    "runtime": _runtime,
}
