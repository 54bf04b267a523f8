"""What every back end is asked and what it returns: one form for all of them."""

from typing import NamedTuple, TypeAlias

from torch import Tensor

from gcnsl.reconnection.pairs import Pairs

Threshold: TypeAlias = float | Tensor
"""The smallest similarity that is kept: a number, or a scalar on the GPU, which the host never reads."""


class Problem(NamedTuple):
    """Average h (m × p) over the pairs of rows of z (n × q) and ``keys`` (m × q) that reach the threshold.

    Rows of z and ``keys`` have norm 1 or 0; ``tolerance`` is how far from that a squared norm may be. If the rows of z
    are compared with each other, ``keys`` is z, the same Python object. All tensors have one dtype, float32 or float64,
    and one device. ``known`` are the pairs of this z, if an earlier call listed them and hence also checked z.

    If the rows of z are consecutive keys, ``first_key`` is the first of them, and the pair of row i and key first_key +
    i is a loop. With ``loops``, a loop is kept unless its row is zero, even if its similarity falls short of the
    threshold by rounding; without, it is left out.
    """

    z: Tensor
    keys: Tensor
    h: Tensor
    threshold: Threshold
    tolerance: float = 1e-4
    known: Pairs | None = None
    first_key: int | None = None
    loops: bool = True

    @classmethod
    def of(  # noqa: PLR0917 - the order of the fields
        cls,
        z: Tensor,
        keys: Tensor | None,
        h: Tensor,
        threshold: Threshold,
        tolerance: float = 1e-4,
        first_key: int | None = None,
        loops: bool = True,
    ) -> "Problem":
        """Return the problem with contiguous tensors, where None stands for keys that are z."""
        z, h = z.contiguous(), h.contiguous()
        if keys is None:
            return cls(z, z, h, threshold, tolerance, first_key=0, loops=loops)
        # Detaching makes a new object: keys that a caller gives have a gradient of their own, even if they are z.
        return cls(z, keys.contiguous().detach(), h, threshold, tolerance, first_key=first_key, loops=loops)

    @property
    def work(self) -> int:
        """The multiply-adds of a pass if all pairs are kept."""
        return len(self.z) * len(self.keys) * (self.z.shape[1] + self.h.shape[1])

    @property
    def square(self) -> bool:
        """Whether the rows of z are compared with each other, which makes the kept pairs symmetric."""
        return self.keys is self.z


class Averages(NamedTuple):
    """The result of a forward pass: o = Â* h (n × p), the degrees d_i = Σ_j a_ij (n) and the kept pairs."""

    out: Tensor
    degree: Tensor
    pairs: Pairs


class Gradients(NamedTuple):
    """The result of a backward pass: ∂L/∂z, ∂L/∂keys and ∂L/∂h. In a square problem, the first two are one tensor."""

    z: Tensor
    keys: Tensor
    h: Tensor
