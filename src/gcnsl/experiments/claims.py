"""What the paper claims, and whether our numbers confirm it: computed from the runs, nothing written by hand.

Two variants are compared run by run. Training sets of different runs overlap, so the variance of the mean difference is
corrected as in Nadeau and Bengio (2003),

    s² · (1/n + n_test / n_train),

and a difference counts only if its 95 % interval excludes zero (:func:`gcnsl.evaluation.paired_difference`). "No worse"
counts as shown only if that interval ends no more than :data:`EQUAL` points below zero: too few runs to see a
difference are no proof that there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import fmean
from typing import Literal, get_args

from gcnsl.datasets.splits import SHARES
from gcnsl.evaluation.statistics import PairedDifference, paired_difference
from gcnsl.experiments import paper
from gcnsl.experiments.display_names import column_label
from gcnsl.experiments.plan import COMPARED, DEPTHS, MERGES, ablation_row
from gcnsl.experiments.result_tables import Table, TableCell, number_text

Verdict = Literal["holds", "holds so far", "holds in part", "not shown", "mostly does not hold", "does not hold"]
EQUAL = 1.0
"""A variant that is at most this many points of accuracy worse is called no worse."""
FASTER = 1.1
"""A method is called faster if it is at least this many times as fast: times vary."""
METHOD = (
    "Variants are compared run by run; a difference counts if its 95 % interval, corrected for overlapping training "
    f"sets, excludes zero. “No worse” counts if that interval excludes a loss of more than {EQUAL:g} point, “faster” "
    f"from {FASTER:g} times."
)
"""How claims are judged, for readers."""
Pairs = Sequence[tuple[str, str]]
"""Rows to compare on every graph; the first of each pair is claimed to be better."""


@dataclass(frozen=True)
class Finding:
    """What the runs say about a claim on one graph: for it, against it, or ``None`` if the difference may be noise."""

    text: str
    outcome: bool | None


@dataclass(frozen=True)
class Claim:
    """A claim of the paper, and what we find in one variant of an experiment.

    Attributes:
        text: The claim, in short.
        source: Where the paper makes it.
        variant: The kind of split of our runs, and whose hyper-parameters they have.
        findings: One for each graph and pair of rows.
        planned: How many findings there are when all runs are done.
        of_paper: Whether the paper makes the claim; otherwise it is ours, on how close we come to the paper.
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
        counts = {
            "for it": outcomes.count(True),
            "against it": outcomes.count(False),
            "within noise": outcomes.count(None),
        }
        told = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
        missing = f"{self.planned - len(outcomes)} not run" if len(outcomes) < self.planned else ""
        return f"{told} ({', '.join(filter(None, (f'of {self.planned}', missing, self.variant)))})"


def difference(more: TableCell, less: TableCell) -> PairedDifference | None:
    """The mean difference over the runs that both cells have, and its corrected interval.

    The ratio n_test / n_train is its mean over these runs. Runs of version 0.1.0 did not store ``train_nodes`` and
    ``test_nodes``; if none of the runs did, the ratio is that of :data:`gcnsl.datasets.splits.SHARES`.

    Returns:
        ``None`` if the cells have fewer than two runs in common.
    """
    common = common_runs(more, less)
    if len(common) < 2:
        return None
    nodes = [result.metrics for cell in (more, less) for result in cell.good if result.spec.run in common]
    ratios = [metrics["test_nodes"] / metrics["train_nodes"] for metrics in nodes if "train_nodes" in metrics]
    test_share = fmean(ratios) if ratios else SHARES[2] / SHARES[0]
    return paired_difference([more.values[run] - less.values[run] for run in common], test_share)


def common_runs(one: TableCell, other: TableCell) -> list[int]:
    """The numbers of the runs that both cells have."""
    return sorted(one.values.keys() & other.values.keys())


def judge(tables: Sequence[Table]) -> list[Claim]:
    """Judge the paper's claims that these tables have results for."""
    about = [table for table in tables if table.experiment.name in _CLAIMS]
    return [claim for table in about for claim in _CLAIMS[table.experiment.name](table) if claim.findings]


def worst_first(claims: Iterable[Claim]) -> list[list[Claim]]:
    """The claims, grouped by text, in the order of the verdict on the first variant of each, worst first."""
    together: dict[str, list[Claim]] = {}
    for claim in claims:
        together.setdefault(claim.text, []).append(claim)
    order = get_args(Verdict)
    return sorted(together.values(), key=lambda same: -order.index(same[0].verdict))


def to_markdown(claims: Iterable[Claim]) -> str:
    """The claims as a list in Markdown, with the findings against them; empty if there are none."""
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
    """The claim that on each graph one row is better than another, or at least no worse."""
    findings = []
    for column, (one, other) in product(columns, pairs):
        better, worse = table.cells.get((one, column)), table.cells.get((other, column))
        delta = difference(better, worse) if better and worse else None
        if better is None or worse is None or delta is None:
            continue
        common = common_runs(better, worse)
        means = (
            number_text(fmean(cell.values[run] for run in common), None, table.experiment.unit)
            for cell in (better, worse)
        )
        few = "" if len(common) == len(better.planned.runs) else f", n = {len(common)}"
        names = f"{column_label(column)}: {table.row_label(one)} vs {table.row_label(other)}"
        told = f"{names}, {' : '.join(means)} ({delta.mean:+.2f} ± {delta.half_width:.2f}{few})"
        findings.append(Finding(told, _outcome(delta, allow_equal=allow_equal)))
    return Claim(text, source, table.variant, tuple(findings), len(columns) * len(pairs))


def _outcome(delta: PairedDifference, *, allow_equal: bool) -> bool | None:
    """Whether a difference is above zero, or not below where equal is enough; ``None`` if it may be either."""
    low, high = delta.mean - delta.half_width, delta.mean + delta.half_width
    if high < 0:
        return False
    return True if low > 0 or (allow_equal and low >= -EQUAL) else None


def _accuracy(table: Table) -> Iterator[Claim]:
    reached = [
        Finding(
            f"{column_label(column)}, {table.row_label(row)}: {number_text(cell.mean, cell.std, '%')}, "
            f"the paper's {number_text(*cell.planned.paper, '%')}",
            cell.reached,
        )
        for column in table.columns
        for row in MERGES
        if (cell := table.cells.get((row, column))) and cell.planned.paper and cell.reached is not None
    ]
    yield Claim(
        "GCN-SL's accuracies are reached: no more than one of the paper's standard deviations short, or above",
        "table of accuracies",
        table.variant,
        tuple(reached),
        planned=len(MERGES) * len(paper.DATASETS),
        of_paper=False,
    )

    rivals = [row for row in COMPARED if row not in MERGES]
    printed_best = [column for column, row in paper.BOLD.items() if row == "gcn-sl-cc"]
    text = "GCN-SL_cc is better than every other method on the graphs where the paper prints it in bold"
    yield _versus(table, text, "table of accuracies", [("gcn-sl-cc", rival) for rival in rivals], printed_best)
    text = "GCN-SL is better than H2GCN on all graphs"
    yield _versus(table, text, "section 4.6", list(product(MERGES, ["h2gcn-1", "h2gcn-2"])), list(paper.DATASETS))
    worse = [("mlp", method) for method in ("gcn", "gat", "geom-gcn", "mixhop")]
    for kind, columns in (("WebKB", paper.WEBKB), ("Wikipedia", paper.WIKIPEDIA)):
        text = f"GCN, GAT, Geom-GCN and MixHop are worse than the MLP on the {kind} graphs"
        yield _versus(table, text, "section 4.6", worse, columns)


def _ablation(table: Table) -> Iterator[Claim]:
    neither, learned, given, both = (False, False), (False, True), (True, False), (True, True)

    def claim(
        text: str, more: tuple[bool, bool], less: tuple[bool, bool], graphs: Sequence[str], *, allow_equal: bool = False
    ) -> Claim:
        pairs = [(ablation_row(method, *more), ablation_row(method, *less)) for method in MERGES]
        return _versus(table, text, "section 4.4", pairs, graphs, allow_equal=allow_equal)

    heterophilous = paper.WEBKB + paper.WIKIPEDIA
    yield claim("A* helps on the WebKB and Wikipedia graphs", both, given, heterophilous)
    yield claim("A* does not hurt on the citation graphs", both, given, paper.CITATION, allow_equal=True)
    yield claim("A is very important on the citation graphs", given, neither, paper.CITATION)
    text = "A is of little use, or even bad, on the WebKB graphs"
    yield claim(text, neither, given, paper.WEBKB, allow_equal=True)
    yield claim("A* is more reliable than A on graphs of low homophily", learned, given, heterophilous)


def _spectral(table: Table) -> Iterator[Claim]:
    pairs = [(f"{method} with F", f"{method} without F") for method in MERGES]
    text = "The spectral features F make GCN-SL better, on all graphs"
    yield _versus(table, text, "section 4.5", pairs, list(paper.DATASETS))


def _homophily(table: Table) -> Iterator[Claim]:
    def claim(text: str, more: str, less: str) -> Claim:
        return _versus(table, text, "section 4.4", [(more, less)], list(paper.DATASETS))

    learned = "gcn-sl-cc A*"
    yield claim("The graph that GCN-SL learns is of much higher homophily than the original", learned, "original")
    yield claim("The graph that NLGNN learns is of much higher homophily than the original", "nlgnn", "original")
    yield claim("Training raises the homophily of A*", learned, "initial A*")
    yield claim("The graph that GCN-SL learns is of higher homophily than NLGNN's", learned, "nlgnn")


def _depth(table: Table) -> Iterator[Claim]:
    shallow, deep = DEPTHS[0], DEPTHS[-1]
    text = f"A GCN of {deep} layers is worse than one of {shallow}"
    yield _versus(table, text, "section 4.6", [(f"gcn-{shallow}", f"gcn-{deep}")], ["cora"])
    text = f"GCN-SL_cc with K = {deep} is no worse than with K = {shallow}"
    pair = [(f"gcn-sl-cc-{deep}", f"gcn-sl-cc-{shallow}")]
    yield _versus(table, text, "section 4.6", pair, ["cora"], allow_equal=True)


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
