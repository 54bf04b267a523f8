"""Spectral features as a transform of PyTorch Geometric."""

from typing import Any

import torch
from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform

from gcnsl.errors import InputError
from gcnsl.spectral.transformer import Scale, SpectralFeatures


class AddSpectralFeatures(BaseTransform):  # type: ignore[misc]
    """Add the spectral features F of the nodes (n × c) to a graph, computed from its ``x``.

    It can stand in :class:`torch_geometric.transforms.Compose` and in a dataset's ``pre_transform``. A sparse ``x`` is
    never made dense.

    Args:
        n_components: Number of features per node (c).
        attr_name: Name of the attribute for F; ``None`` to put F beside a dense ``x`` instead.
        scale: ``"sqrt-n"`` for entries of about one, as networks like them, or ``"unit"`` for unit columns.
        random_state: Seed of ESC-ANCH's anchors.
        options: Further arguments of :class:`SpectralFeatures`, such as ``method`` and ``n_anchors``.

    >>> data = AddSpectralFeatures(2)(Data(x=torch.eye(4) + 1))
    >>> data.spectral.shape
    torch.Size([4, 2])
    """

    def __init__(
        self,
        n_components: int = 25,
        *,
        attr_name: str | None = "spectral",
        scale: Scale = "sqrt-n",
        random_state: Any = 0,
        **options: Any,
    ) -> None:
        self.attr_name = attr_name
        self.features = SpectralFeatures(n_components=n_components, scale=scale, random_state=random_state, **options)

    def forward(self, data: Data) -> Data:
        """The graph with F."""
        x = data.x
        if x is None:
            raise InputError("data has no x, from which spectral features are computed")
        if self.attr_name is None and x.layout != torch.strided:
            raise InputError("data.x is sparse: name an attribute for the spectral features, attr_name='spectral'")
        spectral = self.features.fit_transform(x)
        if self.attr_name is None:
            data.x = torch.cat([x, spectral.to(x.dtype)], dim=1)
        else:
            data[self.attr_name] = spectral
        return data

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.features.n_components})"
