"""What every back end is asked and what it returns, one form for all of them; and the checks of the arguments."""

import math
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor

from gcnsl.checks import check_epsilon
from gcnsl.errors import InputError

Threshold: TypeAlias = float | Tensor
"""The smallest similarity that is kept: a number, or a scalar on the GPU, which the host never reads."""

PAIRS_PER_ROW = {"cpu": 512, "cuda": 128}
"""The most pairs that are listed by device, per row on average, so that memory stays O(n) whatever ε is."""
SAMPLED_ROWS = 64
"""The rows from which the number of kept pairs is estimated."""
WIDTH = 128
"""The number of keys with which the compiled search compares a row at a time."""
ROUNDING = {torch.bfloat16: 8e-3, torch.float16: 1e-3, torch.float32: 1e-6, torch.float64: 1e-14}
"""By dtype, how far below 1 rounding can leave the similarity of a normalised row with itself."""
UNIT_TOLERANCE = {torch.bfloat16: 2e-2, torch.float16: 2e-3, torch.float32: 1e-4, torch.float64: 1e-4}
"""By dtype, how far from 1 the squared norm of a row may be."""


class Pairs(NamedTuple):
    """The kept pairs, or candidates for them: row i keeps ``columns[start[i] : start[i + 1]]``, in ascending order.

    ``start`` (n + 1, int64) and ``columns`` (int32) are on the device of z.
    """

    start: Tensor
    columns: Tensor


class Problem(NamedTuple):
    """Average h (m × p) over the pairs of rows of z (n × q) and ``keys`` (m × q) that reach the threshold.

    Rows of z and ``keys`` have norm 1 or 0; ``tolerance`` is how far from that a squared norm may be. All tensors have
    one dtype, float32 or float64, and one device. ``pairs`` are those of this z, if an earlier call listed them and
    hence also checked z.

    If the rows of z are compared with each other, ``keys`` is z, the same Python object, and the pair (i, i) is a loop.
    With ``loops``, a loop is kept unless its row is zero, even if its similarity falls short of the threshold by
    rounding; without, it is left out.
    """

    z: Tensor
    keys: Tensor
    h: Tensor
    threshold: Threshold
    tolerance: float = 1e-4
    loops: bool = True
    pairs: Pairs | None = None

    @classmethod
    def of(cls, z: Tensor, keys: Tensor | None, h: Tensor, threshold: Threshold, **options: Any) -> "Problem":
        """Return the problem with contiguous tensors, where None stands for keys that are z."""
        z, h = z.detach().contiguous(), h.detach().contiguous()
        # Detaching makes a new object: keys that a caller gives have a gradient of their own, even if they are z.
        return cls(z, z if keys is None else keys.detach().contiguous(), h, threshold, **options)

    @property
    def work(self) -> int:
        """The multiply-adds of a pass if all pairs are kept."""
        return len(self.z) * len(self.keys) * (self.z.shape[1] + self.h.shape[1])

    @property
    def square(self) -> bool:
        """Whether the rows of z are compared with each other, which makes the kept pairs symmetric."""
        return self.keys is self.z

    @property
    def degree(self) -> float:
        """An estimate of the number of pairs per row, from some rows, the same each time."""
        sample = self.z[:: max(1, len(self.z) // SAMPLED_ROWS)]
        return int((sample @ self.keys.T >= self.threshold).sum()) / len(sample)

    @property
    def room(self) -> int:
        """The largest number of pairs that are listed."""
        return len(self.z) * PAIRS_PER_ROW[self.z.device.type]


class PairMemory:
    """The listed pairs of the last z.

    A training step is often followed by an evaluation pass, and the next training step has the same weights as that
    pass. A model that keeps a memory searches once for both.
    """

    def __init__(self) -> None:
        self._kept: tuple[Tensor, tuple[float, bool], Pairs] | None = None

    def __reduce__(self) -> tuple[type["PairMemory"], tuple[()]]:
        """Copy and pickle without the content, which can be searched for again and is larger than any weights."""
        return PairMemory, ()

    def recall(self, problem: Problem) -> Pairs | None:
        """Return the pairs of a problem if they are the ones kept last."""
        if self._kept is None:
            return None
        z, kept_for, pairs = self._kept
        return pairs if kept_for == (problem.threshold, problem.loops) and torch.equal(z, problem.z) else None

    def keep(self, problem: Problem, pairs: Pairs | None) -> None:
        """Replace the content by these pairs, or by nothing if they are not listed."""
        # a copy: z may change in place
        kept_for = float(problem.threshold), problem.loops
        self._kept = None if pairs is None else (problem.z.clone(), kept_for, pairs)


class Averages(NamedTuple):
    """The result of a forward pass: o = Â* h (n × p), the degrees d_i = Σ_j a_ij (n) and the pairs, if listed."""

    out: Tensor
    degree: Tensor
    pairs: Pairs | None = None


class Gradients(NamedTuple):
    """The result of a backward pass: ∂L/∂z, ∂L/∂keys and ∂L/∂h. In a square problem, the first two are one tensor."""

    z: Tensor
    keys: Tensor
    h: Tensor


def computed_in(dtype: torch.dtype) -> torch.dtype:
    """Return the dtype of the computation for inputs of this dtype: float32 for half precision."""
    return torch.promote_types(dtype, torch.float32)


def threshold_of(epsilon: float | Tensor, dtype: torch.dtype) -> Any:
    """Check ε and return the smallest similarity that is kept, given the dtype of the input z.

    An ε on a GPU stays there, and is not checked, since that would make the host wait.
    """
    least = torch.finfo(computed_in(dtype)).tiny  # not 0: a pair with a similarity of 0 has no weight
    most = 1 - ROUNDING[dtype]
    if isinstance(epsilon, Tensor) and epsilon.is_cuda:
        return epsilon.detach().clamp(least, most)
    return min(max(check_epsilon(epsilon.item() if isinstance(epsilon, Tensor) else epsilon), least), most)


def check_arguments(z: Tensor, h: Tensor, keys: Tensor | None) -> None:
    """Check all that does not depend on values, which costs nothing."""
    for name, rows in ({"z": z, "h": h} if keys is None else {"z": z, "keys": keys, "h": h}).items():
        if not isinstance(rows, Tensor):
            raise InputError(f"{name}({type(rows).__name__}) must be a torch.Tensor: call torch.as_tensor({name})")
        if rows.dim() != 2 or 0 in rows.shape:
            raise InputError(
                f"{name} has shape {tuple(rows.shape)}: it must be a non-empty matrix with one row per node"
            )
        if rows.dtype not in ROUNDING:
            raise InputError(f"{name} has dtype {rows.dtype}: it must be floating-point, call {name}.float()")
        if rows.device != z.device:
            raise InputError(f"{name} is on {rows.device} and z on {z.device}: both must be on one device, call .to()")
        if computed_in(rows.dtype) != computed_in(z.dtype):
            raise InputError(
                f"{name} has dtype {rows.dtype} and z has {z.dtype}: both must be float64 or neither, "
                f"call {name}.to(z.dtype)"
            )
    nodes, name = (z, "z") if keys is None else (keys, "keys")
    if nodes.shape[1] != z.shape[1]:
        raise InputError(
            f"keys has {nodes.shape[1]} columns and z has {z.shape[1]}: both must have the same number of columns"
        )
    if len(h) != len(nodes):
        raise InputError(f"h has {len(h)} rows and {name} has {len(nodes)}: both must have one row per node")


def check_values(problem: Problem) -> None:
    """Check that the rows of z and keys have norm 1 or are zero, and that h is finite."""
    if problem.pairs is None:
        _check_unit_rows("z", problem.z, problem.tolerance)
    if not problem.square:
        _check_unit_rows("keys", problem.keys, problem.tolerance)
    _check_finite("h", problem.h)


def _check_unit_rows(name: str, rows: Tensor, tolerance: float) -> None:
    """On a GPU, this waits for the device."""
    if rows.device.type == "cpu":  # waking torch's threads takes longer than this
        squared: Any = np.einsum("ij,ij->i", rows.numpy(), rows.numpy())
    else:
        squared = rows.square().sum(dim=1)
    bad = ~(abs(squared - 1) <= tolerance) & (squared != 0)
    if bool(bad.any()):
        _check_finite(name, rows)
        row = int(bad.nonzero()[0][0])
        raise InputError(
            f"{name}[{row}] has norm {float(rows[row].double().norm()):.6g}: rows must have norm 1 or be 0, "
            f"call torch.nn.functional.normalize({name})"
        )


def _check_finite(name: str, rows: Tensor) -> None:
    with np.errstate(all="ignore"):  # the sum of finite entries may overflow, so the entries have the last word
        total = float(rows.numpy().sum()) if rows.device.type == "cpu" else float(rows.sum())
    if not math.isfinite(total) and not bool(rows.isfinite().all()):
        row, column = (~rows.isfinite()).nonzero()[0].tolist()
        raise InputError(f"{name}[{row}, {column}] is {float(rows[row, column])}: all entries must be finite")
