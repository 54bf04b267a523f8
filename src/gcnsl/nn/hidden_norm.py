"""Normalisation between the layers of a deep network."""

from torch import nn

from gcnsl.nn.config import HiddenNorm


def hidden_norm(kind: HiddenNorm, channels: int) -> nn.Module:
    """The layer that normalises hidden features (n × channels): each column (``batch``), each row (``layer``) or none.

    Columns are normalised by their mean and variance over all nodes, in evaluation by running means of both.
    """
    if kind == "none":
        return nn.Identity()
    return nn.BatchNorm1d(channels) if kind == "batch" else nn.LayerNorm(channels)
