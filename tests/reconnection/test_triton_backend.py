import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch.nn.functional import normalize

from gcnsl.errors import InputError
from gcnsl.reconnection import reconnect
from gcnsl.reconnection.pairs import Regime

from .cases import assert_close, make_case
from .gpu import DEVICE, LARGE, RUNS_KERNELS, needs_kernels, run, use
from .test_loops import by_pairs, random_problem


@pytest.mark.skipif(RUNS_KERNELS, reason="the kernels run in this process")
def test_under_the_interpreter() -> None:
    """Run this and the other tests of kernels in a process of their own."""
    modules = sorted(Path(__file__).parent.glob("test_triton_*.py"))
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *modules]
    environment = os.environ | {"TRITON_INTERPRET": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
    assert "passed" in done.stdout


@pytest.fixture(autouse=True)
def small_graphs_are_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Graphs small enough for a test would all be done in tiles."""
    if RUNS_KERNELS:
        from gcnsl.reconnection import triton_backend

        monkeypatch.setattr(triton_backend, "FUSED_PAIRS", 0)


@needs_kernels
@pytest.mark.parametrize(
    ("kind", "n", "m", "q", "p"),
    [
        ("few", 66, None, 5, 9),
        ("all", 20, None, 16, 20),
        ("some", 5, 66, 17, 20),
        ("all", 12, 5, 3, 33),
        ("diagonal", 10, None, 3, 2),
        ("some", 1, 1, 1, 1),
    ],
)
@pytest.mark.parametrize("regime", [Regime.LISTED, Regime.TILED])
def test_agrees_with_the_oracle(  # noqa: PLR0917
    kind: str, n: int, m: int | None, q: int, p: int, regime: Regime, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(regime, monkeypatch)
    case = make_case(n, m, q, p, kind, seed=4, zero_rows=min(2, n - 1), duplicates=min(3, n))
    ran_in, results = run(case)
    if kind != "diagonal" and n > 1:
        assert ran_in == regime
    assert_close(results, case.expected())


@needs_kernels
@pytest.mark.parametrize("loops", [True, False])
@pytest.mark.parametrize("regime", [Regime.LISTED, Regime.TILED])
def test_loops_are_kept_or_left_out(loops: bool, regime: Regime, monkeypatch: pytest.MonkeyPatch) -> None:
    use(regime, monkeypatch)
    made = [random_problem(seed, torch.float32) for seed in range(300 if LARGE else 40)]
    for z, h, epsilon, grad in (problem for problem in made if problem is not None):
        least = min(epsilon, 1 - 1e-6)
        expected = by_pairs(z.double().numpy(), h.double().numpy(), least, grad.numpy(), loops=loops)
        leaves = [tensor.to(DEVICE).requires_grad_() for tensor in (z, h)]
        out = reconnect(*leaves, epsilon, loops=loops, backend="triton")
        out.backward(grad.float().to(DEVICE))
        assert_close([out, *(leaf.grad for leaf in leaves)], [torch.from_numpy(array) for array in expected])


@needs_kernels
@pytest.mark.parametrize("loops", [True, False])
@pytest.mark.parametrize("regime", [Regime.LISTED, Regime.TILED])
def test_some_rows_against_all_know_which_key_they_are(
    loops: bool, regime: Regime, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(regime, monkeypatch)
    case, rows, results = make_case(30, None, 4, 3, "some", seed=5, zero_rows=1), slice(13, 27), []
    for some in (True, False):
        z, h = case.leaves(device=DEVICE)
        options = {"keys": z, "first_key": rows.start} if some else {}
        out = reconnect(z[rows] if some else z, h, case.epsilon, loops=loops, backend="triton", **options)
        own = out if some else out[rows]
        own.backward(case.upstream().to(DEVICE)[rows])
        results.append([own.detach().cpu().double(), z.grad.cpu().double(), h.grad.cpu().double()])
    assert_close(*results)


@needs_kernels
@pytest.mark.skipif(not LARGE, reason="too large for the interpreter")
@pytest.mark.parametrize("kind", ["diagonal", "few", "some", "all"])
@pytest.mark.parametrize(("n", "m", "q", "p"), [(2999, None, 16, 64), (2048, 3000, 33, 100), (1500, None, 200, 256)])
def test_large_sizes(kind: str, n: int, m: int | None, q: int, p: int) -> None:
    case = make_case(n, m, q, p, kind, seed=4, zero_rows=5, duplicates=5)
    assert_close(run(case)[1], case.expected())


@needs_kernels
def test_the_same_bits_each_time() -> None:
    case = make_case(2000 if LARGE else 25, None, 16, 20, "few", seed=4)
    for first, second in zip(run(case)[1], run(case)[1], strict=True):
        assert torch.equal(first, second)


@needs_kernels
@pytest.mark.parametrize("regime", [Regime.LISTED, Regime.TILED])
def test_threshold_decisions_agree_with_float64(regime: Regime, monkeypatch: pytest.MonkeyPatch) -> None:
    """With h the unit matrix the output is Â*: which entries are there tells which pairs were kept."""
    use(regime, monkeypatch)
    n = 256 if LARGE else 16
    generator = torch.Generator().manual_seed(0)
    for q in (3, 16, 64):
        z = normalize(torch.randn(n, q, generator=generator), dim=1)
        exact = z.double() @ z.double().T
        for epsilon in (0.1, 0.5, 0.9, float(exact[0, 1].abs())):
            kept = reconnect(z.to(DEVICE), torch.eye(n).to(DEVICE), epsilon, backend="triton").cpu() > 0
            unlike = kept != (exact >= epsilon)
            assert bool(((exact - epsilon).abs()[unlike] <= 1e-6).all())


@needs_kernels
@pytest.mark.parametrize("m", [None, 7])
@pytest.mark.parametrize("fused_pairs", [0, 1000])
@pytest.mark.parametrize("expected_per_row", [0, 2, 16])
def test_ways_to_start_give_the_same(
    m: int | None, fused_pairs: int, expected_per_row: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fused at once, or searched, with fewer, about as many, or more candidates expected than there are."""
    from gcnsl.reconnection import triton_backend

    monkeypatch.setattr(triton_backend, "FUSED_PAIRS", fused_pairs)
    monkeypatch.setattr(triton_backend, "EXPECTED_PER_ROW", expected_per_row)
    case = make_case(11, m, 4, 3, "some", seed=4)
    regime, results = run(case)
    assert regime == (Regime.TILED if fused_pairs else Regime.LISTED)
    assert_close(results, case.expected())


@needs_kernels
def test_ties_and_rows_that_keep_nothing() -> None:
    z = torch.tensor([[1.0, 0.0, 0.0], [0.5, 0.75**0.5, 0.0], [0.0, 0.0, 0.0]], device=DEVICE)
    h = torch.tensor([[1.0], [4.0], [7.0]], device=DEVICE)
    out = reconnect(z, h, 0.5, backend="triton")
    assert torch.allclose(out.cpu(), torch.tensor([[2.0], [3.0], [0.0]]))
    nothing = reconnect(z, h[:1], 0.9, keys=-z[:1], backend="triton")
    assert nothing.tolist() == [[0.0], [0.0], [0.0]]


@needs_kernels
@pytest.mark.skipif(not LARGE, reason="the interpreter's tensors are not the compiler's")
def test_registered_and_compiled() -> None:
    case = make_case(500, None, 16, 20, "few", seed=4)
    z, h = case.leaves(device=DEVICE)
    torch.library.opcheck(torch.ops.gcnsl.reconnect, (z, None, h, case.epsilon, 1e-4, None, True, "triton"))
    step = torch.compile(
        lambda z, h: reconnect(z, h, case.epsilon, backend="triton"), fullgraph=True, backend="aot_eager"
    )
    step(z, h).backward(case.upstream().to(DEVICE))
    assert_close([z.grad, h.grad], case.expected()[1:])


@needs_kernels
@pytest.mark.skipif(not LARGE, reason="needs a GPU")
def test_memory_on_the_device() -> None:
    """At n = 19,717 and a few neighbours: 64 MiB where the matrix takes 1.5 GiB."""
    z = normalize(torch.randn(19_717, 16, device=DEVICE), dim=1).requires_grad_()
    h = torch.randn(19_717, 64, device=DEVICE, requires_grad=True)
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    reconnect(z, h, 0.76).sum().backward()
    assert torch.cuda.max_memory_allocated() - before < 64 * 2**20


@needs_kernels
def test_bad_values_are_told() -> None:
    z = normalize(torch.randn(50, 4, generator=torch.Generator().manual_seed(0)), dim=1).to(DEVICE)
    h = torch.ones(50, 2, device=DEVICE)
    bad_z, bad_h, nan_z = z.clone(), h.clone(), z.clone()
    bad_z[17] *= 1.3
    bad_z[40] *= 2
    bad_h[9, 1] = torch.inf
    nan_z[5, 1] = torch.nan
    for arguments, message in [
        ({"z": bad_z, "h": h}, r"z\[17\] has norm 1.3"),
        ({"z": z, "h": h, "keys": bad_z}, r"keys\[17\] has norm 1.3"),
        ({"z": bad_z, "h": h, "keys": z}, r"z\[17\] has norm 1.3"),
        ({"z": nan_z, "h": h}, r"z\[5, 1\] is nan"),
        ({"z": z, "h": bad_h}, r"h\[9, 1\] is inf"),
    ]:
        with pytest.raises(InputError, match=message):
            reconnect(**arguments, epsilon=0.5, backend="triton")
