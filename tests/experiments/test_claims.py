"""Claims are judged by runs, and noise shows nothing."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from gcnsl.evaluation.statistics import PairedDifference, paired_difference
from gcnsl.experiments.claims import (
    Claim,
    Finding,
    _outcome,
    difference,
    judge,
    not_run,
)
from gcnsl.experiments.plan import EXPERIMENTS, Scope, plan
from gcnsl.experiments.records import RunSpec, by_spec
from gcnsl.experiments.tables import Cell, fill

from .cases import result
from .plausible import plausible_results


def cell(*values: float, first: int = 0, **nodes: int) -> Cell:
    specs = [RunSpec("x", "texas", "random", first + run, 0, ()) for run in range(len(values))]
    good = tuple(result(of=spec, metrics={"test": value, **nodes}) for spec, value in zip(specs, values, strict=True))
    return Cell("x", "texas", "random", "test", tuple(specs), good=good)


def test_the_corrected_interval_is_the_formula() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.random(10), rng.random(10)
    deltas = 100 * (a - b)
    for nodes, ratio in (({}, 20 / 48), ({"train_nodes": 50, "test_nodes": 30}, 0.6)):
        found = difference(cell(*a, **nodes), cell(*b))
        assert found.mean == pytest.approx(deltas.mean())
        error = math.sqrt(deltas.var(ddof=1) * (1 / 10 + ratio))
        assert found.half_width == pytest.approx(stats.t.ppf(0.975, 9) * error)


def test_runs_are_compared_with_the_same_run_and_its_numbers_of_nodes() -> None:
    a, b = cell(0.1, 0.2, 0.4, train_nodes=10, test_nodes=10), cell(0.2, 0.1, train_nodes=10, test_nodes=5)
    assert difference(a, b) == pytest.approx(paired_difference([-10.0, 10.0], 0.75))
    assert difference(a, cell(0.2, 0.4, 0.9, first=1))[:2] == (pytest.approx(0), pytest.approx(0))
    assert difference(a, cell(0.5, first=2)) is None


@pytest.mark.parametrize(
    ("outcomes", "verdict"),
    [
        ([True, True], "holds"),
        ([True, None], "holds in part"),
        ([True, False], "holds in part"),
        ([True, False, False], "mostly does not hold"),
        ([False, None], "does not hold"),
        ([None, None], "not shown"),
    ],
)
def test_verdicts(outcomes, verdict) -> None:
    findings = tuple(Finding("z", outcome) for outcome in outcomes)
    claim = Claim("x", "y", "random splits", findings, planned=len(outcomes))
    assert claim.verdict == verdict
    assert claim.summary.endswith(f"(of {len(outcomes)}, random splits)")
    more = replace(claim, planned=5)
    assert more.verdict == (verdict if verdict != "holds" else "holds so far")
    assert more.summary.endswith(f"(of 5, {5 - len(outcomes)} not run, random splits)")


@pytest.mark.parametrize(
    ("mean", "half", "more", "no_less"),
    [
        (2.0, 1.0, True, True),
        (0.5, 1.0, None, True),
        (-0.2, 0.5, None, True),
        (0.5, 3.0, None, None),
        (-0.6, 0.5, False, False),
        (0.0, 0.0, None, True),
    ],
)
def test_no_difference_is_not_shown_by_noise(mean, half, more, no_less) -> None:
    delta = PairedDifference(mean, half, math.nan, math.nan)
    assert _outcome(delta, allow_equal=False) is more
    assert _outcome(delta, allow_equal=True) is no_less


@pytest.fixture
def claims(all_methods):
    """Judge made-up results, changed."""

    def judged(change=lambda spec, metrics: metrics, names=tuple(EXPERIMENTS), **scope):
        chosen = Scope(**({"runs": 5} | scope))
        results = plausible_results(chosen, names=names)
        for made in results:
            made.metrics.update(change(made.spec, dict(made.metrics)) if made.status == "ok" else {})
        found = by_spec(results)
        planned = (table for name in names for table in plan(name, replace(chosen, results=found)))
        return judge(fill(planned, found))

    return judged


def find(claims, text: str, variant: str = "random splits") -> Claim:
    (claim,) = [claim for claim in claims if text in claim.text and claim.variant == variant]
    return claim


def test_reached_and_outdone(claims) -> None:
    def flat(spec, metrics):
        return metrics | {"test": 0.3 + 0.001 * spec.run + (0.1 if spec.method == "mlp" else 0)}

    judged = claims(flat, names=["accuracy"])
    for variant in ("random splits", "Geom-GCN's splits"):
        reached = find(judged, "are reached", variant)
        assert len(reached.findings) == 16
        assert reached.verdict == "does not hold", "even on Squirrel 30 is too little"
        best = find(judged, "in bold", variant)
        assert best.verdict == "does not hold"
        assert all(" vs MLP" in finding.text for finding in best.findings if finding.outcome is False)
        assert [finding.outcome for finding in best.findings].count(False) == 5
        assert len(best.findings) == 5 * 8
        for kind in ("WebKB", "Wikipedia"):
            assert find(judged, f"worse than the MLP on the {kind}", variant).verdict == "holds"
        assert len(find(judged, "better than H2GCN", variant).findings) == 2 * 2 * 8


def test_homophily_depth_and_time(claims) -> None:
    def sinks(spec, metrics):
        return metrics | {"test": 0.9 + 0.001 * spec.run - 0.02 * dict(spec.options).get("num_layers", 0)}

    judged = claims(sinks, names=["homophily", "depth", "runtime", "spectral"])
    assert find(judged, "GCN-SL learns is of much higher").verdict == "holds in part", "on Cora it falls"
    assert find(judged, "NLGNN learns is of much higher").verdict == "holds in part"
    assert find(judged, "than NLGNN's").verdict == "holds"
    ours = find(judged, "among nodes with features")
    assert (ours.verdict, ours.origin) == ("holds in part", "our measure of the learned graph")
    assert find(judged, "A GCN of 5 layers").verdict == "holds"
    assert find(judged, "with K = 5 is no worse").verdict == "holds"
    esc = find(judged, "ESC is faster than SC", "")
    assert (esc.verdict, len(esc.findings)) == ("holds", 8)
    assert esc.summary == "8 for it (of 8)"
    assert len(find(judged, "spectral features").findings) == 16


def test_claims_without_runs_are_not_judged(claims) -> None:
    assert claims(names=["accuracy"], methods=["mlp"], datasets=["texas"]) == []
    assert claims(names=["synthetic"]) == []
    assert len(not_run([])) == 18
    judged = claims(names=["runtime", "ablation"])
    assert len(not_run(judged)) == 18 - 2 - 5
    assert not {claim.text for claim in judged} & set(not_run(judged))
    assert not_run(claims()) == []
