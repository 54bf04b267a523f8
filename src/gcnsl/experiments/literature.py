"""What the other methods' own papers set for each graph, where it is not the same for all."""

from typing import Any

from gcnsl.experiments import paper

_GEOM_GCN_WIDTHS = {"cora": 16, "citeseer": 16, "pubmed": 64} | dict.fromkeys(paper.WIKIPEDIA, 48)
_GEOM_GCN_WIDTH_WEBKB = 32
_GEOM_GCN_DECAY_WEBKB = 5e-5

_NOT_PUBLISHED = ("squirrel", "citeseer", "pubmed")
"""Graphs whose structural neighbourhoods we compute: Squirrel's were not published, and with Isomap's published ones of
the others the classes of test nodes come along (see :mod:`gcnsl.structure.published`)."""


def hyperparameters(method: str, dataset: str) -> dict[str, Any]:
    """The options of a method that are set for this graph alone; mostly none."""
    if method != "geom-gcn" or dataset not in paper.DATASETS:
        return {}
    options = {"source": "computed" if dataset in _NOT_PUBLISHED else "published"}
    if dataset in paper.WEBKB:
        return options | {"hidden_channels": _GEOM_GCN_WIDTH_WEBKB, "weight_decay": _GEOM_GCN_DECAY_WEBKB}
    return options | {"hidden_channels": _GEOM_GCN_WIDTHS[dataset]}
