import pytest
import torch
from torch.nn.functional import normalize

from gcnsl.reconnection import pairs
from gcnsl.reconnection.pairs import Regime
from gcnsl.reconnection.problem import Problem

from .cases import assert_close, make_case
from .gpu import DEVICE, LARGE, needs_kernels, run, use


@needs_kernels
@pytest.mark.parametrize("m", [None, 70])
def test_candidates_are_the_pairs_near_the_threshold_or_above(m: int | None) -> None:
    """Every kept pair is a candidate, and no candidate is further below the threshold than twice the margin."""
    from gcnsl.reconnection import triton_backend, triton_search

    generator = torch.Generator().manual_seed(0)
    z, keys = (normalize(torch.randn(n, 5, generator=generator), dim=1).to(DEVICE) for n in (66, m or 66))
    keys = z if m is None else keys
    report = torch.zeros(4, dtype=torch.int32, device=DEVICE)
    rows = triton_backend._prepare_rows(z, None, report, 1e-4, are_keys=False)
    key_rows = rows if m is None else triton_backend._prepare_rows(keys, None, report, 1e-4, are_keys=True)
    problem = Problem.of(z, None if m is None else keys, keys, torch.tensor([0.3], device=DEVICE))
    found = triton_backend._start_search(problem, rows, key_rows, report, room=66 * len(keys) + 66, expected=0)
    listed = found[: int(report[3])].long()
    listed = listed[listed < 66 * len(keys)]  # the diagonal is counted twice and written once
    assert len(listed.unique()) == len(listed)
    candidate = torch.zeros(66 * len(keys), dtype=torch.bool, device=DEVICE)
    candidate[listed] = True
    exact = (z.double() @ keys.double().T).flatten()
    assert bool(candidate[exact >= 0.3].all())
    assert not bool(candidate[exact < 0.3 - 2 * triton_search.MARGIN].any())


@needs_kernels
def test_more_candidates_than_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search stops when the list is full, and says so, at every size of the list."""
    use(Regime.LISTED, monkeypatch)
    case = make_case(2000 if LARGE else 30, None, 16, 3, "some", seed=4)
    degree = int((case.z @ case.z.T >= case.epsilon).sum()) // len(case.z)
    for per_row, regime in (
        (0, Regime.TILED),
        (1, Regime.TILED),
        (degree - 1, Regime.TILED),
        (degree + 5, Regime.LISTED),
    ):
        monkeypatch.setattr(pairs, "PAIRS_PER_ROW", dict.fromkeys(pairs.PAIRS_PER_ROW, per_row))
        ran_in, results = run(case)
        assert ran_in == regime
        assert_close(results, case.expected())
