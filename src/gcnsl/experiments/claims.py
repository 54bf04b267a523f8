"""Whether our numbers confirm what is claimed: computed from the runs, nothing written by hand.

Two variants are compared run by run, and a difference counts only if its interval, corrected for training sets that
overlap (:func:`gcnsl.evaluation.paired_difference`), excludes zero. "No worse" counts as shown only if the interval
reaches zero and excludes a loss of more than :data:`EQUAL` points: too few runs to see a difference prove nothing.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import fmean
from typing import Literal, NamedTuple, get_args

from gcnsl.evaluation.statistics import PairedDifference, paired_difference
from gcnsl.experiments import paper
from gcnsl.experiments.beyond import OTHERS, PARTS, WHOLE, WIKIPEDIA, rows_of
from gcnsl.experiments.plan import COMPARED, DEPTHS, MERGES
from gcnsl.experiments.tables import Cell, Table, column_label, number_text
from gcnsl.graph.masks import SHARES
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
_OF_PAPER, _OURS = "What the paper claims", "What we measured beside it"


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
    source = "parts of GCN-SL+"
    text = "The learned graph on neighbours alone, without the structure branch, helps on Chameleon and Squirrel"
    yield Comparison(source, text, [f"{WHOLE} -structure"], [f"{WHOLE} -links"], _WIKIPEDIA, of_paper=False)
    better = ("makes GCN-SL+ better on Chameleon and Squirrel", WIKIPEDIA, False)
    no_worse = ("does not make GCN-SL+ worse on other graphs", OTHERS, True)
    for (row, part), (effect, places, equal) in product(PARTS.items(), (better, no_worse)):
        columns = [place.column for place in places if row in rows_of(WHOLE, place)]
        if part.name:
            yield Comparison(source, f"{part.name} {effect}", [WHOLE], [row], columns, equal, of_paper=False)


_REACHED = "GCN-SL's accuracies are reached: no more than one of the paper's standard deviations short, or above"
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


class Finding(NamedTuple):
    """What the runs say about a claim on one graph: for it, against it, or ``None`` if the difference may be noise."""

    text: str
    outcome: bool | None


@dataclass(frozen=True)
class Claim:
    """A claim, the paper's or ours, and its findings in one variant of an experiment: in the end as many as planned."""

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
        names = {True: "for it", False: "against it", None: "within noise"}
        told = ", ".join(f"{outcomes.count(kind)} {name}" for kind, name in names.items() if kind in outcomes)
        missing = f"{self.planned - len(outcomes)} not run" if len(outcomes) < self.planned else ""
        return f"{told} ({', '.join(filter(None, (f'of {self.planned}', missing, self.variant)))})"


def judge(tables: Iterable[Table]) -> list[Claim]:
    """Judge the claims that these tables have results for."""
    claims: list[Claim] = []
    for table in tables:
        if table.experiment == "accuracy":
            planned, findings = len(MERGES) * len(paper.DATASETS), tuple(_reached(table))
            claims.append(Claim(_REACHED, "table of accuracies", table.variant, findings, planned, of_paper=False))
        for claimed in COMPARISONS.get(table.experiment, ()):
            named = product(MERGES, claimed.more, claimed.less)
            pairs = dict.fromkeys((more.format(method), less.format(method)) for method, more, less in named)
            found = (_compared(table, claimed, column, *pair) for column, pair in product(claimed.columns, pairs))
            findings = tuple(finding for finding in found if finding is not None)
            planned = len(claimed.columns) * len(pairs)
            claims.append(Claim(claimed.text, claimed.source, table.variant, findings, planned, claimed.of_paper))
    return [claim for claim in claims if claim.findings]


def _reached(table: Table) -> Iterator[Finding]:
    """Whether the accuracies of GCN-SL are those of the paper."""
    for column, row in product(table.columns, MERGES):
        cell = table.cells.get((row, column))
        if cell and cell.reached is not None:
            text = f"{column_label(column)}, {table.row_label(row)}: {cell.text}, the paper's {cell.paper_text}"
            yield Finding(text, cell.reached)


def _compared(table: Table, claimed: Comparison, column: str, more: str, less: str) -> Finding | None:
    """Whether one row is better than the other in a column, or no worse; ``None`` where runs are missing."""
    one, other, where = table.cells.get((more, column)), table.cells.get((less, column)), column_label(column)
    if not (one and other and one.mean is not None and other.mean is not None):
        return None
    if one.unit == "s":
        seconds = " s against ".join(number_text(mean, None, "s") for mean in (one.mean, other.mean))
        beyond_noise = max(one.mean, other.mean) >= FASTER * min(one.mean, other.mean)
        told = f"{where}: {seconds} s, {other.mean / one.mean:.3g} times"
        return Finding(told, one.mean < other.mean if beyond_noise else None)
    delta = difference(one, other)
    if delta is None:
        return None
    common = one.values.keys() & other.values.keys()
    averages = [fmean(cell.values[run] for run in common) for cell in (one, other)]
    means = " : ".join(number_text(mean, None, table.unit) for mean in averages)
    few = "" if len(common) == len(one.runs) else f", n = {len(common)}"
    names = f"{where}: {table.row_label(more)} vs {table.row_label(less)}"
    told = f"{names}, {means} ({delta.mean:+.2f} ± {delta.half_width:.2f}{few})"
    return Finding(told, _outcome(delta, allow_equal=claimed.allow_equal))


def difference(more: Cell, less: Cell) -> PairedDifference | None:
    """The mean difference over the runs that both cells have, and its corrected interval; ``None`` below two runs.

    The ratio n_test / n_train is its mean over these runs. Runs of version 0.1.0 did not store ``train_nodes`` and
    ``test_nodes``; if none of the runs did, the ratio is that of :data:`gcnsl.graph.masks.SHARES`.
    """
    common = sorted(more.values.keys() & less.values.keys())
    if len(common) < 2:
        return None
    nodes = [result.metrics for cell in (more, less) for result in cell.good if result.spec.run in common]
    ratios = [metrics["test_nodes"] / metrics["train_nodes"] for metrics in nodes if "train_nodes" in metrics]
    test_share = fmean(ratios) if ratios else SHARES[2] / SHARES[0]
    return paired_difference([more.values[run] - less.values[run] for run in common], test_share)


def _outcome(delta: PairedDifference, *, allow_equal: bool) -> bool | None:
    """Whether a difference is above zero, or not below where equal is enough; ``None`` if it may be either."""
    low, high = delta.mean - delta.half_width, delta.mean + delta.half_width
    if high < 0:
        return False
    return True if low > 0 or (allow_equal and low >= -EQUAL) else None


def by_origin(claims: Iterable[Claim]) -> dict[str, list[list[Claim]]]:
    """The claims by title, the paper's and ours, then by text: the worst verdict on the first variant comes first."""
    titled: dict[str, dict[str, list[Claim]]] = {_OF_PAPER: {}, _OURS: {}}
    for claim in claims:
        titled[_OF_PAPER if claim.of_paper else _OURS].setdefault(claim.text, []).append(claim)
    place = get_args(Verdict).index
    found = {title: sorted(of.values(), key=lambda same: -place(same[0].verdict)) for title, of in titled.items()}
    return {title: together for title, together in found.items() if together}


def not_run(claims: Iterable[Claim]) -> list[str]:
    """The paper's claims that are not among the judged ones, because they have no runs yet."""
    judged = {claim.text for claim in claims}
    compared = (claimed for same in COMPARISONS.values() for claimed in same)
    return [claimed.text for claimed in compared if claimed.of_paper and claimed.text not in judged]


def tally(claims: Sequence[Claim]) -> dict[str, int]:
    """How many of the paper's claims hold, and so on.

    A claim holds if all of its variants do, and does not if none does, even in part, and one speaks against it.
    """
    counts = dict.fromkeys(("hold", "hold in part", "can't be told from noise", "do not hold, or mostly not"), 0)
    for same in by_origin(claims).get(_OF_PAPER, []):
        verdicts = {claim.verdict for claim in same}
        if verdicts == {"holds"}:
            counts["hold"] += 1
        elif verdicts == {"not shown"}:
            counts["can't be told from noise"] += 1
        elif verdicts <= {"not shown", "mostly does not hold", "does not hold"}:
            counts["do not hold, or mostly not"] += 1
        else:
            counts["hold in part"] += 1
    return counts | {"have no runs yet": len(not_run(claims))}


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
