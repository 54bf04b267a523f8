"""Inputs for the operator that are random, awkward on purpose, and clear of the threshold by more than rounding."""

from dataclasses import dataclass

import torch
from hypothesis import assume
from hypothesis import strategies as st
from torch import Tensor

from gcnsl.reconnection import dense, reconnect
from gcnsl.reconnection.problem import Problem


@dataclass
class Case:
    """z (n × q), h (n × p or m × p), ε, and keys (m × q) in the rectangular form; float32."""

    z: Tensor
    h: Tensor
    epsilon: float
    keys: Tensor | None

    def leaves(self, dtype: torch.dtype = torch.float32, device: str = "cpu") -> list[Tensor]:
        """z, h and keys as leaves that collect gradients."""
        tensors = [self.z, self.h] if self.keys is None else [self.z, self.h, self.keys]
        return [tensor.to(device, dtype, copy=True).requires_grad_() for tensor in tensors]

    def clearance(self) -> float:
        """How far the similarity nearest to ε is from it: float32 may decide either way on one that is too near."""
        keys = self.z if self.keys is None else self.keys
        return float((self.z.double() @ keys.double().T).sub_(self.epsilon).abs_().min())

    def upstream(self) -> Tensor:
        """A fixed gradient of the output (n × p)."""
        return torch.randn(self.z.shape[0], self.h.shape[1], generator=torch.Generator().manual_seed(1))

    def run(self, backend: str, device: str = "cpu", dtype: torch.dtype = torch.float32) -> list[Tensor]:
        """The output and the gradients of z, h and keys, by a back end."""
        leaves = self.leaves(dtype, device)
        epsilon = min(self.epsilon, 1 - 1e-6)  # rows that were normalised in float32 are no closer to 1 in float64
        out = reconnect(leaves[0], leaves[1], epsilon, keys=None if self.keys is None else leaves[2], backend=backend)
        out.backward(self.upstream().to(device, dtype))
        return [out.detach(), *(leaf.grad for leaf in leaves)]

    def problem(self, dtype: torch.dtype = torch.float32, device: str = "cpu") -> Problem:
        """The problem that a back end is given."""
        z, h, *keys = self.leaves(dtype, device)
        return Problem.of(z, keys[0] if keys else None, h, min(self.epsilon, 1 - 1e-6))

    def expected(self) -> list[Tensor]:
        """The output and the gradients of z, h and keys, by the dense oracle in float64."""
        leaves = self.leaves(torch.float64)
        keys = leaves[0] if self.keys is None else leaves[2]
        out = dense.reconnect(leaves[0], keys, leaves[1], min(self.epsilon, 1 - 1e-6))
        out.backward(self.upstream().double())
        return [out.detach(), *(leaf.grad for leaf in leaves)]


def clear_epsilon(z: Tensor, keys: Tensor, wanted: float) -> float:
    """The middle of the widest gap between similarities around ``wanted``: no pair is within rounding of it."""
    similarity = (z.double() @ keys.double().T).flatten()
    near = similarity[(similarity - wanted).abs() < 0.03]
    bounds = torch.tensor([max(wanted - 0.03, 1e-3), min(wanted + 0.03, 1.0 - 1e-5)], dtype=torch.float64)
    levels = torch.cat([near, bounds]).clamp(*bounds.tolist()).sort().values
    widest = int(levels.diff().argmax())
    return float((levels[widest] + levels[widest + 1]) / 2)


def make_case(  # noqa: PLR0917
    n: int, m: int | None, q: int, p: int, kind: str, seed: int, zero_rows: int = 0, duplicates: int = 0
) -> Case:
    """Random rows; ``kind`` says how many pairs are kept: only the diagonal, few, some or all."""
    generator = torch.Generator().manual_seed(seed)
    q = max(q, 12) if kind == "diagonal" else q  # in few dimensions, some of many rows are as good as duplicates

    def rows(count: int) -> Tensor:
        made = torch.randn(count, q, generator=generator)
        made = made.abs() + 0.05 if kind == "all" else made
        made[torch.randint(count, (duplicates,), generator=generator)] = made[0].clone()
        made = torch.nn.functional.normalize(made, dim=1)
        made[torch.randint(count, (zero_rows,), generator=generator)] = 0
        return made

    z, keys = rows(n), None if m is None else rows(m)
    wanted = {"diagonal": 1.0, "few": 0.8, "some": 0.3, "all": 1e-3}[kind]
    epsilon = 1.0 if kind == "diagonal" else clear_epsilon(z, z if keys is None else keys, wanted)
    return Case(z, torch.randn(m or n, p, generator=generator), epsilon if kind != "all" else 1e-3, keys)


@st.composite
def cases(draw: st.DrawFn, largest: int = 3000) -> Case:
    """Mostly small, sometimes up to ``largest`` rows; square and rectangular; with zero rows and duplicates."""
    size = st.one_of(st.integers(1, 40), st.integers(1, 40), st.integers(1, 300), st.integers(300, largest))
    kind = draw(st.sampled_from(["diagonal", "few", "some", "all"]))
    case = make_case(
        n=draw(size),
        m=draw(st.one_of(st.none(), size)),
        q=draw(st.integers(1, 40)),
        p=draw(st.integers(1, 70)),
        kind=kind,
        seed=draw(st.integers(0, 2**31)),
        zero_rows=draw(st.sampled_from([0, 0, 1, 3])),
        duplicates=draw(st.sampled_from([0, 0, 2])),
    )
    assume(kind in ("diagonal", "all") or case.clearance() > 4e-6)  # many rows in few dimensions leave no wide gap
    return case


def assert_close(got: list[Tensor], expected: list[Tensor], tolerance: float = 1e-4) -> None:
    """Compare each tensor with its expected value, relative to its largest entry, or to 0.5 if that is less.

    Gradients may cancel to nothing: with one key every output is its h, the gradient of z and keys is zero, and what
    float32 leaves of a sum over thousands of rows is a few 1e-5.
    """
    for number, (one, other) in enumerate(zip(got, expected, strict=True)):
        scale = max(float(other.abs().max()), 0.5)
        error = float((one.detach().cpu().double() - other).abs().max()) / scale
        assert error <= tolerance, f"tensor {number} is off by {error:.2g} of its largest entry"
