"""What the paper claims, and what we claim of GCN-SL+: which rows of an experiment are better than which others."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from gcnsl.experiments import beyond, paper
from gcnsl.experiments.plan import COMPARED, DEPTHS, MERGES
from gcnsl.methods import METHODS


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
    without, neither = (f"{beyond.WHOLE} {part}" for part in ("-structure", "-links"))
    text = "The learned graph on neighbours alone, without the structure branch, helps on Chameleon and Squirrel"
    yield Comparison(source, text, [without], [neither], _WIKIPEDIA, of_paper=False)
    for part, name in parts.items():
        row = f"{beyond.WHOLE} {part}"
        for text, places, allow_equal in (
            (f"{name} makes GCN-SL+ better on Chameleon and Squirrel", beyond.WIKIPEDIA, False),
            (f"{name} does not make GCN-SL+ worse on other graphs", beyond.OTHERS, True),
        ):
            columns = [place.column for place in places if row in dict(beyond.parts_of(beyond.WHOLE, place))]
            yield Comparison(source, text, [beyond.WHOLE], [row], columns, allow_equal, of_paper=False)


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
_RIVALS = [name for name in METHODS if name != beyond.WHOLE]
_WIKIPEDIA = [place.column for place in beyond.WIKIPEDIA]
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
        Comparison("comparison with equal budgets", _LEADS, [beyond.WHOLE], _RIVALS, _WIKIPEDIA, of_paper=False),
    ],
}
"""The claims by experiment; those of ``runtime`` say that rows are faster."""
