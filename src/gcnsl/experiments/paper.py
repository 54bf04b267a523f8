"""Numbers printed in the paper, as data. Nothing here is measured by this package."""

from typing import NamedTuple


class DatasetRow(NamedTuple):
    """One column of the paper's table of datasets."""

    homophily: float
    nodes: int
    edges: int
    features: int
    classes: int


DATASETS = {
    "cora": DatasetRow(0.81, 2708, 5429, 1433, 7),
    "citeseer": DatasetRow(0.74, 3327, 4732, 3703, 6),
    "pubmed": DatasetRow(0.80, 19717, 44338, 500, 3),
    "squirrel": DatasetRow(0.22, 5201, 198493, 2089, 5),
    "chameleon": DatasetRow(0.23, 2277, 31421, 2325, 5),
    "cornell-geomgcn": DatasetRow(0.30, 183, 295, 1703, 5),
    "texas": DatasetRow(0.11, 183, 309, 1703, 5),
    "wisconsin": DatasetRow(0.21, 251, 499, 1703, 5),
}
"""The paper's eight graphs; its "Cornell" is the one with Texas's features (see ``gcnsl inspect cornell-geomgcn``)."""
