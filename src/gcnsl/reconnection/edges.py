"""`reconnected_edges`, the learned graph itself: its edges and their weights."""

from torch import Tensor

from gcnsl.reconnection import checks, tiled
from gcnsl.reconnection.operator import choose_backend, kept_from


def reconnected_edges(
    z: Tensor, epsilon: float, *, keys: Tensor | None = None, normalize: bool = False
) -> tuple[Tensor, Tensor]:
    """List the edges of A*: all pairs with z_i·z_j ≥ ε, self-loops included.

    Args:
        z: Rows of norm 1, or zero (n × q).
        epsilon: The smallest similarity that is kept, in (0, 1]; see `reconnect`.
        keys: Compare the rows of z with these rows (m × q) instead of with each other.
        normalize: Divide each weight by the sum of its row's, which gives Â* in place of A*.

    Returns:
        ``edge_index`` (2 × E, int64): i in the first row, j in the second, sorted by i, then j; and ``weight`` (E): the
        similarities z_i·z_j, differentiable in z and ``keys``. Memory is that of the result, and E·q for the weights.

    Raises:
        InputError: if an argument is not as described.
    """
    checks.check_rows_argument("z", z)
    key_rows = z if keys is None else keys
    checks.check_arguments(z, key_rows, epsilon, keys)
    computed = checks.computed_in(z.dtype)
    rows = z.to(computed)
    key_rows = rows if keys is None else keys.to(computed)
    checks.check_unit_rows("z", rows, checks.UNIT_TOLERANCE[z.dtype])
    if keys is not None:
        checks.check_unit_rows("keys", key_rows, checks.UNIT_TOLERANCE[z.dtype])
    edge_index = _find(rows.detach(), rows.detach() if keys is None else key_rows.detach(), kept_from(epsilon, z.dtype))
    source, target = edge_index
    weight = (rows[source] * key_rows[target]).sum(dim=1)
    if normalize:
        weight = weight / weight.new_zeros(len(z)).index_add(0, source, weight)[source]
    return edge_index, weight.to(z.dtype)


def _find(z: Tensor, keys: Tensor, limit: float) -> Tensor:
    if choose_backend(z, keys, z.shape[1]) == "numba":
        from gcnsl.reconnection import numba_backend

        return numba_backend.find(z, keys, limit)
    return tiled.find(z, keys, limit)
